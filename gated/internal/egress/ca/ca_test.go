package ca_test

import (
	"bytes"
	"crypto/x509"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"arizuko/gated/internal/egress/ca"
)

func open(t *testing.T, data string, log *bytes.Buffer) *ca.CA {
	t.Helper()
	c, err := ca.Open(data, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// bundled are the roots of a bundle with the certificates of a file.
func bundled(t *testing.T, c *ca.CA, file string) *x509.CertPool {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bundle.pem")
	if err := c.Bundle(file, path); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 || !roots.AppendCertsFromPEM(content) {
		t.Fatalf("%v, %v", info, err)
	}
	return roots
}

func verify(t *testing.T, c *ca.CA, roots *x509.CertPool, host string) error {
	t.Helper()
	leaf, err := c.Leaf(host)
	if err != nil {
		t.Fatal(err)
	}
	_, err = leaf.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host})
	return err
}

func TestCA(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	empty := filepath.Join(data, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	made := open(t, data, &log)
	again := open(t, data, &log)
	roots := bundled(t, again, empty)
	for _, host := range []string{"api.test", strings.Repeat("a", 63) + ".test", "203.0.113.7", "2001:db8::1"} {
		if err := verify(t, made, roots, host); err != nil {
			t.Errorf("%s: %v", host, err)
		}
		first, _ := again.Leaf(host)
		if second, _ := again.Leaf(host); first != second {
			t.Errorf("%s: the certificate was made again", host)
		}
	}
	key := filepath.Join(data, ca.Folder, "ca.pem")
	info, err := os.Stat(key)
	if entries, _ := os.ReadDir(filepath.Dir(key)); err != nil || info.Mode().Perm() != 0o600 || len(entries) != 1 || log.Len() > 0 {
		t.Errorf("%v, %v, %v, log %s", info, err, entries, &log)
	}
	for i := range 3000 {
		if _, err := again.Leaf(strings.Repeat("x", i%60) + "a.test"); err != nil {
			t.Fatal(err)
		}
	}

	if err := os.WriteFile(key, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	replaced := open(t, data, &log)
	if !strings.Contains(log.String(), "authority replaced") || verify(t, replaced, bundled(t, replaced, empty), "api.test") != nil {
		t.Errorf("log %s", &log)
	}
	if err := verify(t, replaced, roots, "api.test"); err == nil {
		t.Error("it is the old one")
	}
	if err := errors.Join(os.Remove(key), os.Symlink(empty, key)); err != nil {
		t.Fatal(err)
	}
	if c, err := ca.Open(data, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("a link: %v, %v", c, err)
	}
}

func TestBundle(t *testing.T) {
	t.Parallel()
	c := open(t, t.TempDir(), &bytes.Buffer{})
	if _, err := os.Stat("/etc/ssl/certs/ca-certificates.crt"); err == nil {
		if err := verify(t, c, bundled(t, c, ""), "api.test"); err != nil {
			t.Error(err)
		}
	}
	if err := c.Bundle(filepath.Join(t.TempDir(), "none"), filepath.Join(t.TempDir(), "x")); err == nil || !strings.Contains(err.Error(), "ca-certificates") {
		t.Errorf("without roots: %v", err)
	}
}
