package nettest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"time"
)

const serverName = "memory.test"

// newCertificate makes the server's certificate, and the configuration of clients that trust it. It is valid at
// the time in bubbles, the year 2000, too.
func newCertificate() (server tls.Certificate, clients *tls.Config, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return server, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{serverName}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return server, nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return server, nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	server = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	return server, &tls.Config{RootCAs: roots, ServerName: serverName, MinVersion: tls.VersionTLS12}, nil
}
