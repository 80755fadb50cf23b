package recorded

import (
	"errors"
	"fmt"
)

// texts refuses texts with unprintable characters, such as line ends, and texts that are too long for a line of a
// report.
func (r *file) texts() error {
	for k, s := range r.Lines {
		if !printable(s, 1<<12) {
			return fmt.Errorf("line of source %d is %.60q", k, s)
		}
	}
	if n := len(r.Expressions); n > 0 && n != len(r.Lines) {
		return fmt.Errorf("%d expressions on %d lines of source", n, len(r.Lines))
	}
	for k, s := range r.Expressions {
		if !printable(s, maxExpression) {
			return fmt.Errorf("expression %d is %.60q", k, s)
		}
	}
	if !printable(r.Class, 1<<10) || !printable(r.ModelType, 1<<10) || !printable(r.Alone, 1<<12) {
		return errors.New("its class, model_type or alone is not one line of text")
	}
	for key, value := range r.Producer {
		if !printable(key, 1<<10) || !printable(value, 1<<10) {
			return fmt.Errorf("its producer has %.60q", key)
		}
	}
	return nil
}

// sources are the lines of source with their expressions.
func (r *file) sources() []Source {
	all := make([]Source, len(r.Lines))
	for k, line := range r.Lines {
		if all[k].Line = line; k < len(r.Expressions) {
			all[k].Expression = r.Expressions[k]
		}
	}
	return all
}
