package harness

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

// readinessMost bounds what is read of an answer.
const readinessMost = 64 << 10

// Readiness is what a daemon's /readyz answers: 0 if nobody does.
func (i *Instance) Readiness(ctx context.Context, name string) (status int, body string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, i.URL(name)+"/readyz", nil)
	if err != nil {
		return 0, ""
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, ""
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(res.Body, readinessMost)) // what came is what is shown
	return res.StatusCode, string(text)
}

func (i *Instance) logPath(name string) string { return filepath.Join(i.Data, name+".log") }

// Log is what a daemon has logged so far, over all its starts; "" before the first.
func (i *Instance) Log(name string) (string, error) {
	log, err := os.ReadFile(i.logPath(name))
	if os.IsNotExist(err) {
		return "", nil
	}
	return string(log), err
}
