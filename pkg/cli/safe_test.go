package cli

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"testing/iotest"

	"arizuko/pkg/config"
)

func TestSafe_RedactsAndPrints(t *testing.T) {
	var out bytes.Buffer
	n, err := fmt.Fprintf(Safe(&out, config.NewRedactor("s3cr\x1bet")), "a s3cr\x1bet\n\x1b[31mb\xff")
	if err != nil || n != 17 || out.String() != "a [redacted]\n?[31mb\ufffd" {
		t.Errorf("%d bytes of %q, %v", n, out.String(), err)
	}
	if _, err := fmt.Fprint(Safe(failing{}, config.Redactor{}), "x"); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("error %v", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, iotest.ErrTimeout }
