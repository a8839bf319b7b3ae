package apierr_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"arizuko/pkg/apierr"
)

func TestStatus_IsOneToOne(t *testing.T) {
	want := map[apierr.Kind]int{
		apierr.BadRequest: 400, apierr.Unauthorized: 401, apierr.Forbidden: 403, apierr.NotFound: 404,
		apierr.Conflict: 409, apierr.Unavailable: 503, apierr.Internal: 500,
	}
	if len(apierr.Kinds()) != len(want) {
		t.Fatalf("%d kinds, want %d", len(apierr.Kinds()), len(want))
	}
	for kind, status := range want {
		if got := kind.Status(); got != status {
			t.Errorf("%s.Status() = %d, want %d", kind, got, status)
		}
		if got := apierr.KindOfStatus(status); got != kind {
			t.Errorf("KindOfStatus(%d) = %s, want %s", status, got, kind)
		}
	}
}

func TestOfForeignStatus(t *testing.T) {
	for status, want := range map[int]apierr.Kind{
		405: apierr.BadRequest, 413: apierr.BadRequest, 422: apierr.BadRequest,
		429: apierr.Unavailable, 502: apierr.Unavailable, 504: apierr.Unavailable,
		501: apierr.Internal, 302: apierr.Internal, 0: apierr.Internal, -1: apierr.Internal,
	} {
		if got := apierr.KindOfStatus(status); got != want {
			t.Errorf("KindOfStatus(%d) = %s, want %s", status, got, want)
		}
	}
}

func TestKindOf(t *testing.T) {
	missing := apierr.New(apierr.NotFound, "no group %q", "main")
	for name, tc := range map[string]struct {
		err  error
		want apierr.Kind
	}{
		"nil":            {nil, ""},
		"error":          {missing, apierr.NotFound},
		"wrapped error":  {fmt.Errorf("load: %w", missing), apierr.NotFound},
		"joined error":   {errors.Join(io.EOF, missing), apierr.NotFound},
		"outermost wins": {apierr.New(apierr.Conflict, "taken: %w", missing), apierr.Conflict},
		"no kind":        {io.EOF, apierr.Internal},
		"unknown kind":   {apierr.New("teapot", "short and stout"), apierr.Internal},
	} {
		if got := apierr.KindOf(tc.err); got != tc.want {
			t.Errorf("%s: KindOf = %q, want %q", name, got, tc.want)
		}
	}
}

func TestNewWraps(t *testing.T) {
	err := apierr.New(apierr.Unavailable, "store: %w", io.ErrUnexpectedEOF)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error("the wrapped error is lost")
	}
	if got, want := err.Error(), "store: unexpected EOF"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
}
