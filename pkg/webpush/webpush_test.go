package webpush

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"encoding/base64"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func decode(t *testing.T, text string) []byte {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestEncrypt_VectorOfRFC8291 is the example of its section 5.
func TestEncrypt_VectorOfRFC8291(t *testing.T) {
	own, err := ecdh.P256().NewPrivateKey(decode(t, "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
	if err != nil {
		t.Fatal(err)
	}
	s := Subscription{Key: decode(t, "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"), Auth: decode(t, "BTBZMqHH6r4Tts7J_aSIgg")}
	got, err := encrypt(s, []byte("When I grow up, I want to be a watermelon"), own, decode(t, "DGv6ra1nlYgDCS1FRnbzlw"))
	want := decode(t, "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN")
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %x, %v; want %x", got, err, want)
	}
}

func TestSubscription_Check(t *testing.T) {
	own, err := ecdh.P256().NewPrivateKey(bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	key, auth := own.PublicKey().Bytes(), make([]byte, authSize)
	for name, tt := range map[string]struct {
		s  Subscription
		ok bool
	}{
		"right":       {Subscription{"https://push.example/x", key, auth}, true},
		"http":        {Subscription{"http://push.example/x", key, auth}, false},
		"no host":     {Subscription{"https:///x", key, auth}, false},
		"a login":     {Subscription{"https://a:b@push.example/x", key, auth}, false},
		"long":        {Subscription{"https://push.example/" + strings.Repeat("x", maxEndpoint), key, auth}, false},
		"no point":    {Subscription{"https://push.example/x", make([]byte, len(key)), auth}, false},
		"short auth":  {Subscription{"https://push.example/x", key, auth[1:]}, false},
		"nothing set": {},
	} {
		if err := tt.s.Check(); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSend_PrivateAddress_Refused(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	c, err := New("secret", "mailto:a@example.org", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	own, err := ecdh.P256().NewPrivateKey(bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{server.URL, strings.Replace(server.URL, "127.0.0.1", "localhost", 1), "https://[::1]:1", "https://10.0.0.1", "https://169.254.169.254"} {
		s := Subscription{host + "/x", own.PublicKey().Bytes(), make([]byte, authSize)}
		if err := c.Send(context.Background(), s, "x", "x", time.Minute); err == nil || !strings.Contains(err.Error(), "is no public address") || strings.Contains(err.Error(), "/x") {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestNew_SameSecret_SameKey(t *testing.T) {
	keys := map[string]bool{}
	for _, secret := range []string{"a", "b", "a"} {
		c, err := New(secret, "mailto:a@example.org", time.Now)
		if err != nil {
			t.Fatal(err)
		}
		keys[c.PublicKey()] = true
	}
	if len(keys) != 2 {
		t.Errorf("keys: %v", keys)
	}
}
