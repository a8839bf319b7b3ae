package apierr

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestStatus_IsOneToOne(t *testing.T) {
	want := map[Kind]int{
		BadRequest: 400, Unauthorized: 401, Forbidden: 403, NotFound: 404,
		Conflict: 409, Unavailable: 503, Internal: 500,
	}
	if len(statuses) != len(want) {
		t.Fatalf("%d kinds, want %d", len(statuses), len(want))
	}
	for kind, status := range want {
		if got := kind.Status(); got != status {
			t.Errorf("%s.Status() = %d, want %d", kind, got, status)
		}
		if got := KindOfStatus(status); got != kind {
			t.Errorf("KindOfStatus(%d) = %s, want %s", status, got, kind)
		}
	}
}

func TestOfForeignStatus(t *testing.T) {
	for status, want := range map[int]Kind{
		405: BadRequest, 413: BadRequest, 422: BadRequest,
		429: Unavailable, 502: Unavailable, 504: Unavailable,
		501: Internal, 302: Internal, 0: Internal, -1: Internal,
	} {
		if got := KindOfStatus(status); got != want {
			t.Errorf("KindOfStatus(%d) = %s, want %s", status, got, want)
		}
	}
}

func TestKindOf(t *testing.T) {
	missing := New(NotFound, "no group %q", "main")
	for name, tc := range map[string]struct {
		err  error
		want Kind
	}{
		"nil":            {nil, ""},
		"error":          {missing, NotFound},
		"wrapped error":  {fmt.Errorf("load: %w", missing), NotFound},
		"joined error":   {errors.Join(io.EOF, missing), NotFound},
		"outermost wins": {New(Conflict, "taken: %w", missing), Conflict},
		"no kind":        {io.EOF, Internal},
		"unknown kind":   {New("teapot", "short and stout"), Internal},
	} {
		if got := KindOf(tc.err); got != tc.want {
			t.Errorf("%s: KindOf = %q, want %q", name, got, tc.want)
		}
	}
}

func TestNewWraps(t *testing.T) {
	err := New(Unavailable, "store: %w", io.ErrUnexpectedEOF)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error("the wrapped error is lost")
	}
	if got, want := err.Error(), "store: unexpected EOF"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
}
