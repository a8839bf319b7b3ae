package subprocess

import "io"

// Output is a Stdout of exec.Cmd that knows when the program has closed it: the program may go on running.
type Output struct {
	io.Writer
	Ended func() // is called then, and must not wait
}

// ReadFrom is called by package exec to copy the program's output.
func (o Output) ReadFrom(output io.Reader) (int64, error) {
	n, err := io.Copy(o.Writer, output)
	o.Ended()
	return n, err
}
