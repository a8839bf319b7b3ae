// Package webpushtest is a push service for tests, and the browsers that it serves.
package webpushtest

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"arizuko/pkg/webpush"
)

// Message is what a browser was sent.
type Message struct {
	Browser string // the path of its endpoint
	Header  http.Header
	Payload string
	Subject string // sub of the signature
	Key     string // the public key of the sender
}

// Service is a push service. It checks and decrypts each message.
type Service struct {
	*httptest.Server
	t       testing.TB
	private *ecdh.PrivateKey
	auth    []byte

	mu     sync.Mutex
	got    []Message
	Answer func(w http.ResponseWriter, r *http.Request) // instead of 201; set it before the first message
}

// New starts a service for the time of a test.
func New(t testing.TB) *Service {
	t.Helper()
	private, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := &Service{t: t, private: private, auth: []byte(rand.Text()[:16])}
	s.Server = httptest.NewTLSServer(s)
	t.Cleanup(s.Close)
	return s
}

// Subscription is that of a browser.
func (s *Service) Subscription(browser string) webpush.Subscription {
	return webpush.Subscription{Endpoint: s.URL + "/" + browser, Key: s.private.PublicKey().Bytes(), Auth: s.auth}
}

// Messages are those that have come since the last call.
func (s *Service) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.got
	s.got = nil
	return got
}

func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the test has ended the call
	}
	m := Message{Browser: strings.TrimPrefix(r.URL.Path, "/"), Header: r.Header}
	if m.Payload, err = Decrypt(s.private, s.auth, body); err == nil {
		m.Subject, m.Key, err = verify(r.Header.Get("Authorization"), "https://"+r.Host)
	}
	if err != nil {
		s.t.Errorf("a push message is wrong: %v", err)
	}
	s.mu.Lock()
	s.got = append(s.got, m)
	s.mu.Unlock()
	if s.Answer != nil {
		s.Answer(w, r)
		return
	}
	w.WriteHeader(http.StatusCreated)
}

// Decrypt reads the body of a message, see RFC 8291 and RFC 8188.
func Decrypt(private *ecdh.PrivateKey, auth, body []byte) (string, error) {
	const saltSize, keySize = 16, 65
	if len(body) < saltSize+5+keySize || body[saltSize+4] != keySize {
		return "", fmt.Errorf("%d bytes are no message", len(body))
	}
	salt, size, public := body[:saltSize], binary.BigEndian.Uint32(body[saltSize:]), body[saltSize+5:saltSize+5+keySize]
	record := body[saltSize+5+keySize:]
	if len(record) > int(size) {
		return "", fmt.Errorf("a record of %d bytes, not %d", len(record), size)
	}
	theirs, err := ecdh.P256().NewPublicKey(public)
	if err != nil {
		return "", err
	}
	shared, err := private.ECDH(theirs)
	if err != nil {
		return "", err
	}
	derive := func(secret, salt []byte, info string, size int) []byte {
		key, err := hkdf.Key(sha256.New, secret, salt, info, size)
		if err != nil {
			panic(err)
		}
		return key
	}
	secret := derive(shared, auth, "WebPush: info\x00"+string(private.PublicKey().Bytes())+string(public), 32)
	block, err := aes.NewCipher(derive(secret, salt, "Content-Encoding: aes128gcm\x00", 16))
	if err != nil {
		return "", err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return "", err
	}
	text, err := gcm.Open(nil, derive(secret, salt, "Content-Encoding: nonce\x00", 12), record, nil)
	if err != nil {
		return "", err
	}
	content, found := strings.CutSuffix(strings.TrimRight(string(text), "\x00"), "\x02")
	if !found {
		return "", fmt.Errorf("no delimiter of the last record: %q", text)
	}
	return content, nil
}

// verify checks the header Authorization, see RFC 8292.
func verify(header, audience string) (subject, key string, err error) {
	fields, found := strings.CutPrefix(header, "vapid t=")
	token, key, hasKey := strings.Cut(fields, ", k=")
	parts := strings.Split(token, ".")
	if !found || !hasKey || len(parts) != 3 {
		return "", "", fmt.Errorf("the header Authorization is %s", header)
	}
	decoded := make([][]byte, len(parts))
	for i, part := range parts {
		if decoded[i], err = base64.RawURLEncoding.DecodeString(part); err != nil {
			return "", "", err
		}
	}
	raw, err := base64.RawURLEncoding.DecodeString(key)
	if err != nil {
		return "", "", err
	}
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), raw)
	if err != nil {
		return "", "", err
	}
	hash, signature := sha256.Sum256([]byte(parts[0]+"."+parts[1])), decoded[2]
	if len(signature) != 64 || !ecdsa.Verify(public, hash[:], new(big.Int).SetBytes(signature[:32]),
		new(big.Int).SetBytes(signature[32:])) {
		return "", "", fmt.Errorf("the signature is wrong: %s", token)
	}
	var algorithm struct{ Typ, Alg string }
	var claims struct {
		Aud, Sub string
		Exp      int64
	}
	if err := json.Unmarshal(decoded[0], &algorithm); err != nil {
		return "", "", err
	}
	if err := json.Unmarshal(decoded[1], &claims); err != nil {
		return "", "", err
	}
	left := time.Until(time.Unix(claims.Exp, 0))
	if algorithm.Typ != "JWT" || algorithm.Alg != "ES256" || claims.Aud != audience || left <= 0 ||
		left > 24*time.Hour {
		return "", "", fmt.Errorf("the token is wrong: %s %s", decoded[0], decoded[1])
	}
	return claims.Sub, key, nil
}
