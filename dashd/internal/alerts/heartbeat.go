package alerts

import (
	"context"
	"errors"
	"io"
	"net/http"
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
	err := call(ctx, a.Heartbeat)
	switch fails := err != nil; {
	case fails == a.silent || ctx.Err() != nil:
		return
	case fails:
		a.Log.Warn("cannot call HEARTBEAT_URL", "err", err)
	default:
		a.Log.Info("HEARTBEAT_URL can be called again")
	}
	a.silent = err != nil
}

// call makes one request. Its error does not name the URL, which is a secret.
func call(ctx context.Context, to string) error {
	ctx, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to, nil)
	if err != nil {
		return errors.New("not a URL")
	}
	req.Close = true                     // once a minute
	res, err := (&http.Client{}).Do(req) // its deadline is that of ctx
	if err != nil {
		return errors.Unwrap(err) // of *url.Error
	}
	defer res.Body.Close()
	if res.StatusCode >= http.StatusBadRequest {
		return errors.New(res.Status)
	}
	_, err = io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer))
	return err
}
