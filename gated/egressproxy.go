package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"arizuko/pkg/daemon"
	egressrows "arizuko/pkg/egress/rows"
	"arizuko/pkg/store"
)

const (
	// proxyPause is between the end of the egress proxy and its next start.
	proxyPause = time.Second
	// proxyReadyTimeout is how long a run waits for the proxy.
	proxyReadyTimeout = 15 * time.Second
	// proxyPoll is how often it is asked whether it is ready.
	proxyPoll = 20 * time.Millisecond
	// proxyStopTimeout is how long the proxy may take to end.
	proxyStopTimeout = 5 * time.Second
)

// awaitProxy starts the egress proxy unless it runs, and returns when it takes requests.
func (g *gated) awaitProxy(ctx context.Context) error {
	select {
	case g.proxyNeeded <- struct{}{}:
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, proxyReadyTimeout)
	defer cancel()
	poll := time.NewTicker(proxyPoll)
	defer poll.Stop()
	for {
		reason, err := daemon.Unready(ctx, g.cfg.Base, "egress")
		if err == nil && reason == "" {
			return nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("the egress proxy does not run, gated's log has its errors: %w",
				cmp.Or(err, errors.New(reason)))
		}
	}
}

// runProxy keeps the egress proxy running from the first run that needs it until ctx ends.
func (g *gated) runProxy(ctx context.Context) error {
	select {
	case <-g.proxyNeeded:
	case <-ctx.Done():
		return nil
	}
	for {
		if err := g.serveProxy(ctx); ctx.Err() == nil {
			g.Log.Error("egress proxy ended; starting it again", "err", err)
		}
		select {
		case <-time.After(proxyPause):
		case <-ctx.Done():
			return nil
		}
	}
}

// serveProxy runs the egress proxy once, after it has ended what the one before has left.
func (g *gated) serveProxy(ctx context.Context) error {
	if err := g.Store.Write(ctx, func(tx *store.Tx) error {
		return egressrows.EndFormer(tx, 0, g.Now().UnixMilli())
	}); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "egress")
	cmd.Args[0] = "gated-egress" // as process lists show it
	cmd.Env, cmd.Stdout, cmd.Stderr = environ(), os.Stderr, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = proxyStopTimeout
	if _, err := cmd.StdinPipe(); err != nil { // open as long as this process lives; the proxy ends with it
		return err
	}
	return cmd.Run()
}
