// Launcher runs arizuko on one machine: it migrates the database, starts every daemon as a
// separate process, restarts daemons that end, and stops them on Ctrl-C. It takes no arguments
// but run, which changes nothing, --help and --version, and passes its environment to the daemons. All programs are in
// the launcher's folder. The archive of a release has a link to it, arizuko.
//
// When the daemons are ready it prints one line on stdout:
//
//	arizuko ready: http://127.0.0.1:8083/login?token=…&next=/chat/main
//
// Everything else, the daemons' output included, goes to stderr, prefixed with its source.
// Exit code: 0 stopped, 75 another launcher runs or an address is in use, 78 invalid configuration,
// else 1, or that of migrate.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"arizuko/pkg/buildinfo"
	"arizuko/pkg/daemon"
)

const usage = `usage: launcher [run | --help | --version]
It runs migrate and all daemons of its own folder, with its environment, until Ctrl-C.`

func main() {
	args := os.Args[1:]
	if buildinfo.Print(os.Stdout, filepath.Base(os.Args[0]), args) || buildinfo.Help(os.Stdout, usage, args) {
		return
	}
	program := daemon.Program{Name: "launcher", Serve: func(ctx context.Context) error {
		if len(args) > 1 || len(args) == 1 && args[0] != "run" {
			return &daemon.ExitError{Code: daemon.ExitRefused,
				Err: errors.New("takes no arguments but run, --help and --version, only the environment")}
		}
		return serve(ctx)
	}}
	os.Exit(program.Run(context.Background(), nil, os.Stdout, os.Stderr))
}

func serve(ctx context.Context) error {
	stop, kill, release := interrupts(ctx)
	defer release()
	cfg, err := loadConfig()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	l := &launcher{
		cfg: cfg, bin: filepath.Dir(self), out: os.Stdout, console: &console{w: os.Stderr}, kill: kill.Done(),
	}
	err = l.run(stop)
	if stop.Err() != nil {
		return nil // the operator stopped it; errors are consequences
	}
	return err
}

// interrupts returns a context that ends at the first signal to stop, and one that ends at a Ctrl-C
// after that. release stops listening for signals.
func interrupts(parent context.Context) (stop, kill context.Context, release func()) {
	signals := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // by nohup
		signals = append(signals, syscall.SIGHUP)
	}
	// Ctrl-C also ends a program that the output is piped into; a write to the broken pipe must not
	// kill the launcher while daemons still run.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	received := make(chan os.Signal, 8)
	signal.Notify(received, signals...)
	stop, endStop := context.WithCancel(parent)
	kill, endKill := context.WithCancel(context.WithoutCancel(parent))
	go func() {
		select {
		case <-received:
			endStop()
		case <-stop.Done():
		}
		for kill.Err() == nil {
			select {
			case again := <-received:
				if again == syscall.SIGINT {
					endKill()
				}
			case <-kill.Done():
			}
		}
	}()
	return stop, kill, func() {
		signal.Stop(received)
		endStop()
		endKill()
	}
}
