package cli

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/apierr"
	"arizuko/pkg/daemon"
	"arizuko/pkg/httpx"
)

func at(url string) Daemon {
	return Daemon{"gated", func() (*httpx.Client, error) { return httpx.NewClient("gated", url, ""), nil }}
}

func TestCall(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/turns" {
			httpx.Error(w, apierr.New(apierr.NotFound, "there is none"))
			return
		}
		body, _ := io.ReadAll(r.Body)
		httpx.JSON(w, http.StatusOK, r.Method+" "+string(body)+" by "+httpx.By(r))
	}))
	defer srv.Close()
	var said string
	err := at(srv.URL).Call(t.Context(), http.MethodPost, "/v1/turns", 7, &said)
	if err != nil || said != "POST 7 by cli" {
		t.Errorf("answered %q, %v", said, err)
	}
	err = at(srv.URL).Call(t.Context(), http.MethodGet, "/v1/none", nil, nil)
	if apierr.KindOf(err) != apierr.NotFound || strings.Contains(err.Error(), "not running") {
		t.Errorf("refused with %v", err)
	}
	if err := (Daemon{"gated", func() (*httpx.Client, error) { return nil, io.ErrUnexpectedEOF }}).Call(t.Context(), "GET", "/", nil, nil); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("without a client: %v", err)
	}
	srv.Close()
	want := "gated is not running at " + srv.URL + ": start it with `gated`, or set GATED_URL ("
	if err := at(srv.URL).Call(t.Context(), "GET", "/", nil, nil); apierr.KindOf(err) != apierr.Unavailable || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("daemon down: %v", err)
	}
}

func TestRead(t *testing.T) {
	for _, tt := range []struct {
		args string
		most int
		rest []string
		n    int
		says string // the error, "" for none
	}{
		{"", 0, nil, 1, ""},
		{"-n 2", 0, nil, 2, ""},
		{"a b c", AnyNumber, []string{"a", "b", "c"}, 1, ""},
		{"a --n=2 b -all", 2, []string{"a", "b"}, 2, ""},
		{"a b", 1, nil, 1, `unexpected argument "b" (usage: gated turns [-n N])`},
		{"-n x", 1, nil, 1, "invalid value"},
		{"a -m", 1, nil, 1, "not defined: -m (usage: gated turns [-n N])"},
		{"-n", 1, nil, 1, "needs an argument"},
	} {
		var out bytes.Buffer
		line := at("").Line("turns [-n N]", &out)
		n := line.Int("n", 1, "how many")
		line.Bool("all", false, "all of them")
		rest, err := line.Read(strings.Fields(tt.args), tt.most)
		var exit *daemon.ExitError
		switch {
		case tt.says == "" && err != nil, tt.says != "" && (!errors.As(err, &exit) || exit.Code != daemon.ExitRefused || !strings.Contains(err.Error(), tt.says)):
			t.Errorf("%q: %v, want %q", tt.args, err, tt.says)
		case tt.says == "" && *n != tt.n:
			t.Errorf("%q: -n is %d, want %d", tt.args, *n, tt.n)
		case out.Len() > 0:
			t.Errorf("%q: it printed %s", tt.args, &out)
		}
		if diff := cmp.Diff(tt.rest, rest); diff != "" {
			t.Errorf("%q: -want +got\n%s", tt.args, diff)
		}
	}
}

func TestHelp(t *testing.T) {
	for _, args := range []string{"-h", "a --help", "-n 2 -help"} {
		var out bytes.Buffer
		line := at("").Line("turns [-n N]", &out)
		line.Int("n", 1, "how many")
		_, err := line.Read(strings.Fields(args), AnyNumber)
		if !errors.Is(err, flag.ErrHelp) || !strings.HasPrefix(out.String(), "usage: gated turns [-n N]\n") || strings.Count(out.String(), "how many") != 1 {
			t.Errorf("%s: %v, it printed %q", args, err, &out)
		}
	}
}

func TestPrintable(t *testing.T) {
	const hostile = "a\x1b[2J\r\nü\t\u202e\u0085\xff"
	if got, want := Printable(hostile), "a?[2J?\nü???\ufffd"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := PrintableLine(hostile), "a?[2J??ü???\ufffd"; got != want {
		t.Errorf("on a line %q, want %q", got, want)
	}
}
