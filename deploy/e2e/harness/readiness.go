package harness

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

// maxReadiness is how much of a readiness answer is read, in bytes.
const maxReadiness = 64 << 10

// Readiness is the answer of a daemon's /readyz, with notes if the secret is there already; the status is 0 if the
// daemon does not answer.
func (i *Instance) Readiness(ctx context.Context, name string) (status int, body string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, i.URL(name)+"/readyz", nil)
	if err != nil {
		return 0, ""
	}
	if secret, err := i.Secret(); err == nil {
		req.Header.Set("Authorization", "Bearer "+secret)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, ""
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxReadiness)) // a part of the body is better than none
	return res.StatusCode, string(text)
}

func (i *Instance) logPath(name string) string { return filepath.Join(i.Dir, name+".log") }

// Log is the log of a daemon over all its starts; "" before the first.
func (i *Instance) Log(name string) (string, error) {
	log, err := os.ReadFile(i.logPath(name))
	if os.IsNotExist(err) {
		return "", nil
	}
	return string(log), err
}

// LogTail is the last n bytes of the log of a daemon, or the error of reading it.
func (i *Instance) LogTail(name string, n int) string {
	log, err := i.Log(name)
	if err != nil {
		return err.Error()
	}
	return log[max(0, len(log)-n):]
}
