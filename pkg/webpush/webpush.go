// Package webpush sends messages to browsers through their push services: RFC 8030, encrypted by RFC 8291 and signed by
// RFC 8292.
package webpush

import (
	"bytes"
	"context"
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
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"arizuko/pkg/httpx"
)

const (
	// recordSize is the size of a push message's one record, which is larger than any payload.
	recordSize = 4096
	maxPayload = 2048
	// padTo is the least length of a payload, so that its length says little.
	padTo       = 512
	saltSize    = 16
	tokenLife   = 12 * time.Hour // of the signature; services allow 24 h
	sendTimeout = 15 * time.Second
	maxEndpoint = 2048
	authSize    = 16
)

// Subscription is where a browser gets messages, as its PushManager says.
type Subscription struct {
	Endpoint  string
	Key, Auth []byte // p256dh and auth
}

// Check refuses a subscription that no browser makes.
func (s Subscription) Check() error {
	u, err := url.Parse(s.Endpoint)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || len(s.Endpoint) > maxEndpoint {
		return errors.New("the address of the push service must be an https URL")
	}
	if _, err := ecdh.P256().NewPublicKey(s.Key); err != nil || len(s.Auth) != authSize {
		return errors.New("the keys of the subscription are wrong")
	}
	return nil
}

// Client sends messages. Make one with New; services know it by its key.
type Client struct {
	HTTP *http.Client // connects to public addresses alone

	key     *ecdsa.PrivateKey
	public  string
	contact string
	now     func() time.Time
}

// New makes a client with a key that it derives from a secret: with another secret, browsers have to subscribe again.
// contact is a mailto: or https: address for the operators of push services.
func New(secret, contact string, now func() time.Time) (*Client, error) {
	raw := derive([]byte(secret), nil, "arizuko web push", sha256.Size)
	raw[0] &= 0x7f // below the order of the curve
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), raw)
	if err != nil {
		return nil, err
	}
	public, err := key.PublicKey.Bytes()
	return &Client{HTTP: newHTTP(), key: key, public: encode(public), contact: contact, now: now}, err
}

// PublicKey is the applicationServerKey that browsers subscribe with.
func (c *Client) PublicKey() string { return c.public }

// newHTTP makes a client that a subscription can't lead to a server of this network: it follows no redirect, either.
func newHTTP() *http.Client {
	dialer := &net.Dialer{Timeout: sendTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err == nil && !httpx.IsPublic(at.Addr()) {
			err = fmt.Errorf("%s is no public address", at.Addr())
		}
		return err
	}}
	return &http.Client{
		Transport: &http.Transport{DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: sendTimeout, IdleConnTimeout: time.Minute},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Refused is the answer of a push service that did not take a message.
type Refused struct {
	Status     int
	RetryAfter time.Duration // 0: it names none
}

// Error implements error.
func (r *Refused) Error() string {
	return fmt.Sprintf("the push service answered %d %s", r.Status, http.StatusText(r.Status))
}

// Send sends v as JSON. The service keeps it for ttl at most. A newer message of the same topic, at most 32 letters and
// digits, replaces one that still waits there. The error is a *Refused if the service has answered.
func (c *Client) Send(ctx context.Context, s Subscription, v any, topic string, ttl time.Duration) error {
	payload, err := json.Marshal(v)
	if err != nil || len(payload) > maxPayload {
		return fmt.Errorf("%d bytes cannot be pushed: %w", len(payload), err)
	}
	payload = append(payload, bytes.Repeat([]byte(" "), max(0, padTo-len(payload)))...) // still the same JSON
	own, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // never fails
	body, err := encrypt(s, payload, own, salt)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Endpoint, bytes.NewReader(body))
	if err != nil {
		return err
	}
	token, err := c.token(req.URL)
	if err != nil {
		return err
	}
	for name, value := range map[string]string{"Authorization": token, "Content-Encoding": "aes128gcm", "Topic": topic,
		"TTL": strconv.Itoa(int(ttl.Seconds())), "Urgency": "high"} {
		req.Header.Set(name, value)
	}
	return c.do(req)
}

func (c *Client) do(req *http.Request) error {
	res, err := c.HTTP.Do(req)
	if where := (*url.Error)(nil); errors.As(err, &where) {
		return where.Err // without the URL, which is a secret of the browser's
	}
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, recordSize) // so that the connection can be used again
	if res.StatusCode >= http.StatusOK && res.StatusCode < http.StatusMultipleChoices {
		return nil
	}
	seconds, _ := strconv.ParseInt(res.Header.Get("Retry-After"), 10, 32) // 0 for a date
	return &Refused{res.StatusCode, time.Duration(seconds) * time.Second}
}

// token is the header by which a service knows the client, see RFC 8292.
func (c *Client) token(endpoint *url.URL) (string, error) {
	claims, err := json.Marshal(map[string]any{"aud": "https://" + endpoint.Host, "sub": c.contact,
		"exp": c.now().Add(tokenLife).Unix()})
	if err != nil {
		return "", err
	}
	text := encode([]byte(`{"typ":"JWT","alg":"ES256"}`)) + "." + encode(claims)
	hash := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, c.key, hash[:])
	if err != nil {
		return "", err
	}
	half := make([]byte, sha256.Size)
	signature := append(bytes.Clone(r.FillBytes(half)), s.FillBytes(half)...)
	return "vapid t=" + text + "." + encode(signature) + ", k=" + c.public, nil
}

// encrypt makes the body of a push message, see RFC 8291, section 3.4.
func encrypt(s Subscription, payload []byte, own *ecdh.PrivateKey, salt []byte) ([]byte, error) {
	theirs, err := ecdh.P256().NewPublicKey(s.Key)
	if err != nil {
		return nil, err
	}
	shared, err := own.ECDH(theirs)
	if err != nil {
		return nil, err
	}
	public := own.PublicKey().Bytes()
	secret := derive(shared, s.Auth, "WebPush: info\x00"+string(s.Key)+string(public), sha256.Size)
	block, err := aes.NewCipher(derive(secret, salt, "Content-Encoding: aes128gcm\x00", aes.BlockSize))
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	body := binary.BigEndian.AppendUint32(bytes.Clone(salt), recordSize)
	body = append(append(body, byte(len(public))), public...)
	nonce := derive(secret, salt, "Content-Encoding: nonce\x00", gcm.NonceSize())
	return gcm.Seal(body, nonce, append(bytes.Clone(payload), 2), nil), nil // 2: the last record
}

func derive(secret, salt []byte, info string, size int) []byte {
	key, _ := hkdf.Key(sha256.New, secret, salt, info, size) // it fails for sizes above 8 kB
	return key
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
