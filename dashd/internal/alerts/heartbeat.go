package alerts

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"
)

const (
	beatTimeout = 10 * time.Second
	maxAnswer   = 1 << 20 // bytes
)

// beat calls the heartbeat's URL. Its failures are logged once.
func (a *Alerts) beat(ctx context.Context) {
	if a.Heartbeat == "" {
		return
	}
	switch err := call(ctx, a.Heartbeat); {
	case ctx.Err() != nil:
	case err != nil && !a.silent:
		a.silent = true
		a.Log.Warn("HEARTBEAT_URL cannot be called", "err", err)
	case err == nil && a.silent:
		a.silent = false
		a.Log.Info("HEARTBEAT_URL can be called again")
	}
}

// call makes one request. Its error does not name the URL, which is a secret.
func call(ctx context.Context, to string) error {
	ctx, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to, nil)
	if err != nil {
		return errors.New("not a URL")
	}
	req.Close = true // once a minute
	res, err := http.DefaultClient.Do(req)
	if failed := new(url.Error); errors.As(err, &failed) {
		return failed.Err
	}
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode >= http.StatusBadRequest {
		return errors.New(res.Status)
	}
	_, err = io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer))
	return err
}
