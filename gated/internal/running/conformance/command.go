package conformance

import (
	"context"
	"flag"
	"io"
	"slices"
	"strings"
	"time"

	"arizuko/pkg/buildinfo"
	"arizuko/pkg/cli"
)

// Command is the subcommand agent. environ makes the agent's environment, redact hides its secrets
// in what is printed; in is the terminal.
func Command(environ func() ([]string, error), redact func(string) string, in io.Reader) cli.Func {
	const usage = "want `agent try` or `agent conform`, then -- and the agent's command"
	return func(ctx context.Context, args []string, out io.Writer) error {
		if len(args) == 0 {
			return cli.UsageError(usage)
		}
		if buildinfo.Help(out, usage, args) {
			return flag.ErrHelp
		}
		env, err := environ()
		if err != nil {
			return err
		}
		switch args[0] {
		case "try":
			return try(ctx, Agent{Env: env, Redact: redact}, args[1:], in, out)
		case "conform":
			return conform(ctx, Agent{Env: env, Redact: redact}, args[1:], out)
		}
		return cli.UsageError("%s, not %q", usage, args[0])
	}
}

var gated = cli.Daemon{Name: "gated"}

func try(ctx context.Context, agent Agent, args []string, in io.Reader, out io.Writer) error {
	line := gated.Line("agent try [-dir FOLDER] [-session ID] -- COMMAND", out)
	line.StringVar(&agent.Session, "session", "", "the session to resume")
	if err := agent.read(line, args); err != nil {
		return err
	}
	return agent.Try(ctx, in, out)
}

func conform(ctx context.Context, agent Agent, args []string, out io.Writer) error {
	line := gated.Line("agent conform [-dir FOLDER] [-wait 60s] [-grace 3s] -- COMMAND", out)
	timeouts := Timeouts{}
	line.DurationVar(&timeouts.Answer, "wait", time.Minute, "timeout of an answer")
	line.DurationVar(&timeouts.End, "grace", EOFGrace, "timeout of the exit after the last answer")
	if err := agent.read(line, args); err != nil {
		return err
	}
	if timeouts.Answer <= 0 || timeouts.End <= 0 {
		return line.UsageError("-wait and -grace must be above 0")
	}
	return agent.Conform(ctx, timeouts, out)
}

// read reads flags up to --, and the command after it: a shell command line if it is one
// argument, else its words.
func (a *Agent) read(line *cli.Line, args []string) error {
	line.StringVar(&a.Dir, "dir", "", "where the agent runs; default: a new folder, removed afterwards")
	end := slices.Index(args, "--")
	if end < 0 {
		end = len(args)
	}
	if _, err := line.Read(args[:end], 0); err != nil {
		return err
	}
	words := args[min(end+1, len(args)):]
	switch {
	case len(words) == 0:
		return line.UsageError("which command?")
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
