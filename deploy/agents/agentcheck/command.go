package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"arizuko/pkg/buildinfo"
)

const usage = "want `agent try` or `agent conform`, then -- and the agent's command"

// usageError is an error in the command line.
type usageError string

func (e usageError) Error() string { return string(e) }

// command runs a command line, in being the terminal. It returns flag.ErrHelp after printing help.
func command(ctx context.Context, agent Agent, args []string, in io.Reader, out io.Writer) error {
	if len(args) == 0 {
		return usageError(usage)
	}
	if buildinfo.Help(out, usage, args) {
		return flag.ErrHelp
	}
	switch args[0] {
	case "try":
		line := newFlags("try [-dir FOLDER] [-session ID] -- COMMAND")
		line.StringVar(&agent.Session, "session", "", "the session to resume")
		if err := agent.read(line, args[1:], out); err != nil {
			return err
		}
		return agent.Try(ctx, in, out)
	case "conform":
		line := newFlags("conform [-dir FOLDER] [-wait 60s] [-grace 3s] -- COMMAND")
		timeouts := Timeouts{}
		line.DurationVar(&timeouts.Answer, "wait", time.Minute, "timeout of an answer")
		line.DurationVar(&timeouts.End, "grace", EOFGrace, "timeout of the exit after the last answer")
		if err := agent.read(line, args[1:], out); err != nil {
			return err
		}
		if timeouts.Answer <= 0 || timeouts.End <= 0 {
			return misused(line, errors.New("-wait and -grace must be above 0"))
		}
		return agent.Conform(ctx, timeouts, out)
	}
	return usageError(fmt.Sprintf("%s, not %q", usage, args[0]))
}

// newFlags are the flags of a verb. Its usage is how users write it.
func newFlags(usage string) *flag.FlagSet {
	line := flag.NewFlagSet("gated agent "+usage, flag.ContinueOnError)
	line.SetOutput(io.Discard) // errors are returned; printing them too would show them twice
	return line
}

func misused(line *flag.FlagSet, err error) error {
	return usageError(fmt.Sprintf("%s (usage: %s)", err, line.Name()))
}

// read reads flags up to --, and the command after it: a shell command line if it is one
// argument, else its words.
func (a *Agent) read(line *flag.FlagSet, args []string, out io.Writer) error {
	line.StringVar(&a.Dir, "dir", "", "where the agent runs; default: a new folder, removed afterwards")
	end := slices.Index(args, "--")
	if end < 0 {
		end = len(args)
	}
	switch err := line.Parse(args[:end]); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(out, "usage: %s\n", line.Name())
		line.SetOutput(out)
		line.PrintDefaults()
		return err
	case err != nil:
		return misused(line, err)
	case line.NArg() > 0:
		return misused(line, fmt.Errorf("unexpected argument %q", line.Arg(0)))
	}
	words := args[min(end+1, len(args)):]
	switch {
	case len(words) == 0:
		return misused(line, errors.New("which command?"))
	case len(words) == 1:
		a.Command = words[0]
	default:
		a.Command = "exec " + quoted(words)
	}
	return nil
}

// quoted joins words so that the shell takes them as they are.
func quoted(words []string) string {
	var all []string
	for _, word := range words {
		if strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,@+") != "" ||
			word == "" {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		all = append(all, word)
	}
	return strings.Join(all, " ")
}
