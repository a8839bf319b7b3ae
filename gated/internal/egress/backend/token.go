// Package backend is what the egress proxy knows of gated: runs, rules, receipts and users' answers, by the database
// and the running gated.
package backend

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

// RunToken is what a run shows the proxy. It is worth something as long as the run lives.
func RunToken(secret string, run int64) string {
	id := strconv.FormatInt(run, 10)
	return id + "." + base64.RawURLEncoding.EncodeToString(mac(secret, "run "+id))
}

// parseToken returns the run of a token of RunToken.
func parseToken(secret, token string) (run int64, err error) {
	id, _, _ := strings.Cut(token, ".")
	run, err = strconv.ParseInt(id, 10, 64)
	if err != nil || !hmac.Equal([]byte(RunToken(secret, run)), []byte(token)) {
		return 0, fmt.Errorf("the proxy's user and password are those of no run")
	}
	return run, nil
}

// mac is keyed by the instance's secret for this use alone.
func mac(secret, text string) []byte {
	h := hmac.New(sha256.New, []byte("arizuko egress 1\x00"+secret))
	_, _ = h.Write([]byte(text)) // a hash takes everything
	return h.Sum(nil)
}

// TokenKey is the key of the tokens that stand for secrets.
func TokenKey(secret string) []byte { return mac(secret, "secrets") }
