// Package ca is the certificate authority of an instance, with which the egress proxy opens the TLS connections of
// agents. Sandboxes trust it, and nothing else does.
package ca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"arizuko/pkg/dataowner"
)

const (
	// Folder is that of the authority in the data folder.
	Folder = "egress"
	// file has the certificate and its key, maxFile is more than it needs.
	file    = "ca.pem"
	maxFile = 64 << 10

	lifetime     = 10 * 365 * 24 * time.Hour
	leafLifetime = 30 * 24 * time.Hour
	// backdated allows for clocks in containers that are behind.
	backdated = time.Hour
	// maxLeaves bounds what an agent that asks for many hosts makes the proxy keep.
	maxLeaves = 1000
)

// CA is a certificate authority. Its methods may be called at the same time.
type CA struct {
	pair tls.Certificate
	key  *ecdsa.PrivateKey // of all leaves; it never leaves the process

	mu     sync.Mutex
	leaves map[string]*tls.Certificate // by host
}

// Open reads the authority of a data folder, and makes it if there is none. One that is damaged or expires is replaced,
// and the log says so: agents that run already do not trust the new one. A file that cannot be read is an error.
func Open(data string, log *slog.Logger) (*CA, error) {
	folder, err := dataowner.Make(data, Folder)
	if err != nil {
		return nil, fmt.Errorf("certificate authority of the egress proxy: %w", err)
	}
	defer folder.Close()
	content, err := dataowner.Read(folder, file, maxFile)
	if err == nil {
		c, invalid := parse(content)
		if invalid == nil {
			return c, nil
		}
		log.Error("certificate authority replaced: running agents must be started again", "err", invalid)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		content, err = create(data, folder)
	}
	if err != nil {
		return nil, fmt.Errorf("the certificate authority of the egress proxy cannot be read or made: make %s "+
			"readable for this user, or remove it for a new one: %w", filepath.Join(data, Folder, file), err)
	}
	return parse(content)
}

func parse(content []byte) (*CA, error) {
	pair, err := tls.X509KeyPair(content, content)
	if err == nil && (!pair.Leaf.IsCA || time.Until(pair.Leaf.NotAfter) < leafLifetime) {
		err = fmt.Errorf("it is no authority, or expires at %s", pair.Leaf.NotAfter)
	}
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return &CA{pair: pair, key: key, leaves: map[string]*tls.Certificate{}}, err
}

// create makes an authority in place of the one there is.
func create(data string, folder *os.Root) (content []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "arizuko egress proxy", Organization: []string{"arizuko"}},
		NotBefore: time.Now().Add(-backdated), NotAfter: time.Now().Add(lifetime),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	pkcs8, keyErr := x509.MarshalPKCS8PrivateKey(key)
	if err := errors.Join(err, keyErr); err != nil {
		return nil, err
	}
	content = append(inPEM("CERTIFICATE", cert), inPEM("PRIVATE KEY", pkcs8)...)
	return content, dataowner.Write(data, folder, file, content)
}

func inPEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// Leaf returns a certificate for a host: a name in lower case, or an IP address.
func (c *CA) Leaf(host string) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cert := c.leaves[host]; cert != nil && time.Until(cert.Leaf.NotAfter) > leafLifetime/2 {
		return cert, nil
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{Organization: []string{"arizuko egress proxy"}},
		NotBefore: time.Now().Add(-backdated), NotAfter: time.Now().Add(leafLifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, c.pair.Leaf, c.key.Public(), c.pair.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("certificate for %s: %w", host, err)
	}
	if template, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("certificate for %s: %w", host, err)
	}
	if len(c.leaves) >= maxLeaves {
		clear(c.leaves)
	}
	c.leaves[host] = &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: c.key, Leaf: template}
	return c.leaves[host], nil
}

// Bundle writes the machine's roots and this authority to a file in PEM, of mode 0644, in one step. roots is the file
// with the machine's, "" for the one of its system.
func (c *CA) Bundle(roots, path string) error {
	files := []string{roots}
	if roots == "" { // as crypto/x509 looks for them
		files = []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
			"/etc/ssl/ca-bundle.pem", "/etc/pki/tls/cacert.pem",
			"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem"}
	}
	for _, name := range files {
		content, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		content = append(append(content, '\n'), inPEM("CERTIFICATE", c.pair.Certificate[0])...)
		part := path + "." + rand.Text()
		if err == nil {
			err = os.WriteFile(part, content, 0o644)
		}
		if err != nil {
			return fmt.Errorf("root certificates: %w", err)
		}
		return errors.Join(os.Chmod(part, 0o644), os.Rename(part, path)) // whatever the umask is
	}
	return fmt.Errorf("no root certificates in %v: install the package ca-certificates", files)
}
