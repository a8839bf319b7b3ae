package doctor

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"

	"golang.org/x/sys/unix"

	"arizuko/pkg/cli"
	"arizuko/pkg/config"
	"arizuko/pkg/facts"
	"arizuko/pkg/httpx"
)

// Fix repairs what can be repaired safely: modes of files that other users can read, and turns that wait since the
// clock was ahead. It prints a line for each. It deletes nothing and starts no turn again.
func Fix(ctx context.Context, base config.Base, gated *httpx.Client, found []facts.Fact, out io.Writer) {
	modes := map[string]struct {
		path string
		mode fs.FileMode
	}{"data-mode": {base.Data, 0o700}, "secret-mode": {base.SecretPath(), 0o600},
		"database-mode": {base.DBPath(), 0o600}}
	for _, f := range found {
		var err error
		result := "fixed"
		if file, is := modes[f.Kind]; is {
			err = chmod(file.path, file.mode)
		} else if f.Kind == "clock-turn" {
			err = gated.Do(ctx, http.MethodPost, "/v1/turns/"+f.Subject+"/retry", nil, nil)
		} else {
			continue
		}
		if err != nil {
			result = "could not: " + cli.PrintableLine(err.Error())
		}
		fmt.Fprintf(out, "%s: %s (%s)\n", result, f.Fix, f.Text)
	}
}

// chmod changes the mode of a file or folder. It follows no link.
func chmod(path string, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Chmod(mode)
}
