package report

type htmlFlag struct{}
