package httpx_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
)

func TestError(t *testing.T) {
	for name, tc := range map[string]struct {
		err    error
		status int
		body   string
	}{
		"fault":    {apierr.New(apierr.NotFound, "no group %q", "a<b"), 404, `{"error":{"kind":"not_found","message":"no group \"a\u003cb\""}}`},
		"wrapped":  {fmt.Errorf("row 7 of /secret/path: %w", apierr.New(apierr.Conflict, "taken")), 409, `{"error":{"kind":"conflict","message":"taken"}}`},
		"internal": {apierr.New(apierr.Internal, "table x"), 500, `{"error":{"kind":"internal","message":"internal error"}}`},
		"plain":    {errors.New("open /secret/path"), 500, `{"error":{"kind":"internal","message":"internal error"}}`},
		"unknown":  {apierr.New("teapot", "/secret/path"), 500, `{"error":{"kind":"internal","message":"internal error"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			httpx.Error(w, tc.err)
			if w.Code != tc.status || strings.TrimSpace(w.Body.String()) != tc.body {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
			if got := w.Header().Get("Content-Type"); got != "application/json" {
				t.Errorf("Content-Type %q", got)
			}
		})
	}
}

func TestJSON_Unencodable_Answers500(t *testing.T) {
	w := httptest.NewRecorder()
	httpx.JSON(w, http.StatusCreated, math.NaN())
	if w.Code != 500 {
		t.Errorf("status %d", w.Code)
	}
}

type route struct {
	Seq    int             `json:"seq"`
	Target string          `json:"target"`
	Config json.RawMessage `json:"config"`
}

func TestDecode(t *testing.T) {
	for body, want := range map[string]string{
		`{"seq":1,"target":"main"}`:           "",
		" {\"seq\":1,\"target\":\"main\"}\n ": "",
		``:                                    "body: empty",
		`   `:                                 "body: empty",
		`{"seq":1`:                            "body: the JSON is cut off",
		`{"seq":1,"targte":"main"}`:           `body: unknown field "targte"`,
		`{"seq":"1"}`:                         `body: field "seq": unexpected string`,
		`{"seq":1.5}`:                         `body: field "seq": unexpected number 1.5`,
		`[]`:                                  "body: unexpected array",
		`{"seq":1,"target":"main"} {}`:        "body: more than one JSON value",
		`{"seq":1,"target":"main"}x`:          "body: more than one JSON value",
		`{seq:1}`:                             "body: invalid character 's' looking for beginning of object key string",
		strings.Repeat("[", 20_000):           "body: invalid character '[' exceeded max depth",
	} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		got, err := httpx.Decode[route](r)
		if want == "" {
			if diff := cmp.Diff(route{Seq: 1, Target: "main"}, got); err != nil || diff != "" {
				t.Errorf("%.40q: %v %s", body, err, diff)
			}
			continue
		}
		if apierr.KindOf(err) != apierr.BadRequest || err.Error() != want {
			t.Errorf("%.40q: %v, want %s", body, err, want)
		}
	}
}
