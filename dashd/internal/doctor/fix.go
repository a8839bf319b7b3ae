package doctor

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"arizuko/pkg/cli"
	"arizuko/pkg/facts"
	"arizuko/pkg/httpx"
)

// Fix repairs what can be repaired safely: modes of files that other users can read, turns that wait since the clock
// was ahead, and daemons that need a restart, if the launcher runs them. It prints what it is about to do, and then
// the result. It deletes nothing, and starts no turn again that has failed.
func Fix(ctx context.Context, cfg Config, gated *httpx.Client, found []facts.Fact, out io.Writer) {
	base := cfg.Base
	modes := map[string]struct {
		path string
		mode fs.FileMode
	}{"data-mode": {base.Data, 0o700}, "secret-mode": {base.SecretPath(), 0o600},
		"database-mode": {base.DBPath(), 0o600}}
	restarted := map[string]bool{}
	for _, f := range found {
		do := func(what string, err func() error) {
			fmt.Fprintf(out, "%s, since %s: ", what, f.Text)
			result := "done"
			if err := err(); err != nil {
				result = "could not: " + cli.PrintableLine(err.Error())
			}
			fmt.Fprintln(out, result)
		}
		if file, is := modes[f.Kind]; is {
			do(f.Fix, func() error { return chmod(file.path, file.mode) })
		} else if f.Kind == "clock-turn" {
			do("retry turn "+f.Subject, func() error {
				return gated.Do(ctx, http.MethodPost, "/v1/turns/"+f.Subject+"/retry", nil, nil)
			})
		}
		for _, name := range f.Restart {
			if f.Kind != maySendTwice && !restarted[name] {
				restarted[name] = true
				do("restart "+name, func() error { return Restart(ctx, base, name) })
			}
		}
	}
	for name := range restarted {
		awaitReady(ctx, cfg, name)
	}
}

// readyTime is how long awaitReady waits at most.
const readyTime = 10 * time.Second

// awaitReady waits until a daemon that was restarted is ready, so that it is no finding only since it starts.
func awaitReady(ctx context.Context, cfg Config, name string) {
	i := slices.IndexFunc(cfg.Daemons, func(e Endpoint) bool { return e.Name == name })
	for until := time.Now().Add(readyTime); i >= 0 && time.Now().Before(until); {
		if askOne(ctx, cfg.Base, cfg.Daemons[i]).status == http.StatusOK {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(stopLook):
		}
	}
}

// maySendTwice is the fact whose restart may send a message a second time: that is for a person to decide.
const maySendTwice = "unsent"

// chmod changes the mode of a file or folder. It follows no link.
func chmod(path string, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Chmod(mode)
}
