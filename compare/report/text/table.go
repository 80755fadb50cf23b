package text

import (
	"io"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// Table writes rows of cells in aligned columns, without lines and without blanks at the end: plain text that stays
// readable in a log. Cells are written as they are, whatever their length. The error is that of w.
func Table(w io.Writer, align []tw.Align, header []string, rows [][]string) error {
	cells := tw.CellConfig{
		Padding:    tw.CellPadding{Global: tw.Padding{Right: "  ", Overwrite: true}},
		Alignment:  tw.CellAlignment{PerColumn: align},
		Formatting: tw.CellFormatting{AutoFormat: tw.Off, AutoWrap: tw.WrapNone},
	}
	var text strings.Builder
	t := tablewriter.NewTable(&text,
		tablewriter.WithConfig(tablewriter.Config{Header: cells, Row: cells}),
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders: tw.BorderNone,
			Settings: tw.Settings{
				Separators: tw.Separators{BetweenColumns: tw.Off, BetweenRows: tw.Off, ShowHeader: tw.Off},
				Lines:      tw.Lines{ShowHeaderLine: tw.Off, ShowTop: tw.Off, ShowBottom: tw.Off},
			},
		})),
	)
	t.Header(header)
	if err := t.Bulk(rows); err != nil {
		return err
	}
	if err := t.Render(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		if _, err := io.WriteString(w, strings.TrimRight(line, " \n")+"\n"); err != nil {
			return err
		}
	}
	return nil
}
