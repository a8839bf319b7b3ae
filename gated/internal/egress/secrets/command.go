package secrets

import (
	"context"
	"fmt"
	"io"
	"strings"

	"arizuko/pkg/cli"
)

// Command is the subcommand `gated secret`. data returns the data folder; values are read from in.
func Command(data func() (string, error), in io.Reader) cli.Func {
	return func(_ context.Context, args []string, out io.Writer) error {
		line := cli.Daemon{Name: "gated"}.Line("secret [list | set [--command COMMAND] NAME | rm NAME]", out)
		command := line.String("command", "", "prints the value, as in 'pass show github'; else it is read from stdin")
		rest, err := line.Read(args, 2)
		if err != nil {
			return err
		}
		folder, err := data()
		if err != nil {
			return err
		}
		store, done := New(folder), "set"
		switch verb := strings.Join(rest[:min(1, len(rest))], ""); {
		case len(rest) < 2 && (verb == "" || verb == "list"):
			names, err := store.Names()
			for _, name := range names {
				fmt.Fprintln(out, name)
			}
			return err
		case len(rest) < 2 || verb != "set" && verb != "rm":
			return line.UsageError("want list, set NAME or rm NAME")
		case verb == "rm":
			done, err = "removed", store.Remove(rest[1])
		case *command != "":
			err = store.SetCommand(rest[1], *command)
		default:
			var value []byte
			if value, err = io.ReadAll(io.LimitReader(in, maxValue+2)); err == nil {
				err = store.Set(rest[1], trimNewline(string(value)))
			}
		}
		if err == nil {
			_, err = fmt.Fprintf(out, "secret %s is %s\n", rest[1], done)
		}
		return err
	}
}
