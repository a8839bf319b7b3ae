package cli

import (
	"io"

	"arizuko/pkg/config"
)

// Safe returns a writer for texts of foreign servers: each Write to it reaches out without secrets
// and without control characters.
func Safe(out io.Writer, r config.Redactor) io.Writer { return r.Writer(printable{out}) }

type printable struct{ out io.Writer }

func (p printable) Write(text []byte) (int, error) {
	if _, err := io.WriteString(p.out, Printable(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}
