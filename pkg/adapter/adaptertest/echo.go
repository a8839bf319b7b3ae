package adaptertest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

// CheckRedacts runs the check subcommand of an adapter, with run, against servers that answer each
// call with the secrets in every way a server writes them: as they are, in URLs and inside quotes.
// answers are bodies, with %s for the secret, and their HTTP status: of refusals, and of what
// check prints if it is accepted.
func CheckRedacts(t *testing.T, secrets []string, answers map[string]int, run func(api string, out io.Writer)) {
	t.Helper()
	for _, secret := range secrets {
		for _, form := range forms(secret) {
			for body, status := range answers {
				var calls atomic.Int32
				api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					calls.Add(1)
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(status)
					_, _ = io.WriteString(w, strings.ReplaceAll(body, "%s", form))
				}))
				var out bytes.Buffer
				run(api.URL, &out)
				api.Close()
				if calls.Load() == 0 || !strings.Contains(out.String(), "[redacted]") {
					t.Errorf("%d calls, and nothing of the answer %d %s is printed:\n%s", calls.Load(), status, body,
						&out)
				}
				for _, leak := range append(forms(secret), "\x1b") {
					if strings.Contains(out.String(), leak) {
						t.Errorf("%d %s: it prints %q:\n%s", status, body, leak, &out)
					}
				}
			}
		}
	}
}

var lowerHex = regexp.MustCompile("%[0-9A-F]{2}")

// forms are a secret as servers write it in a string of JSON.
func forms(secret string) []string {
	quoted, _ := json.Marshal(secret) // a string always marshals
	escaped := url.QueryEscape(secret)
	return []string{string(quoted[1 : len(quoted)-1]), escaped, lowerHex.ReplaceAllStringFunc(escaped, strings.ToLower),
		url.PathEscape(secret)}
}
