package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Table prints rows of cells below headings, aligned, each row on a line.
func Table(out io.Writer, headings []string, rows [][]string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{headings}, rows...) {
		for i := range row {
			row[i] = PrintableLine(row[i])
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}
