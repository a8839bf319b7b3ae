// Package hooks has what the two ends of a webhook share: how each kind of sender signs a delivery, and the secrets
// for it. The signatures are as the senders document them:
// https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries,
// https://docs.gitlab.com/user/project/integrations/webhooks/, https://docs.stripe.com/webhooks/signature and
// https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md.
package hooks

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // some senders sign with it, as HMAC, which its collisions don't break
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"arizuko/pkg/groupconfig"
)

// tolerance is how far the time of a signed delivery may be from now, as Stripe and Standard Webhooks say.
const tolerance = 5 * time.Minute

const (
	idempotencyKey = "Idempotency-Key"
	standardPrefix = "whsec_"
)

// schemes are how senders of the kinds sign or send their token, in the terms of HookHMAC.
var schemes = map[groupconfig.HookKind]groupconfig.Hook{
	groupconfig.HookGitHub:   {Header: "X-Hub-Signature-256", Prefix: "sha256=", IDHeader: "X-Github-Delivery"},
	groupconfig.HookGitLab:   {Header: "X-Gitlab-Token"},
	groupconfig.HookStripe:   {Header: "Stripe-Signature"},
	groupconfig.HookStandard: {Header: "Webhook-Signature", Prefix: "v1,", Encoding: "base64", IDHeader: "Webhook-Id"},
	groupconfig.HookBearer:   {Header: "Authorization", Prefix: "Bearer "},
}

// schemeOf is how the deliveries of a hook are signed.
func schemeOf(h groupconfig.Hook) groupconfig.Hook {
	s, ok := schemes[h.Kind]
	if !ok {
		s = h
	}
	s.Kind, s.IDHeader = h.Kind, cmp.Or(s.IDHeader, h.IDHeader, idempotencyKey)
	return s
}

// token reports whether senders of a kind send the secret itself.
func token(kind groupconfig.HookKind) bool {
	return kind == groupconfig.HookGitLab || kind == groupconfig.HookBearer
}

// Verify returns why a delivery is not of a sender that has one of the secrets, nil if it is. It compares in constant
// time, over the raw body.
func Verify(h groupconfig.Hook, secrets []string, header http.Header, body []byte, now time.Time) error {
	s := schemeOf(h)
	given, signed, err := signatures(s, header, body, now)
	if err != nil {
		return err
	}
	for _, secret := range secrets {
		want := sign(s, secret, signed)
		for _, signature := range given {
			if subtle.ConstantTimeCompare([]byte(signature), []byte(want)) == 1 {
				return nil
			}
		}
	}
	if token(h.Kind) {
		return errors.New("the token is another one than the hook's")
	}
	return errors.New("the signature is not one of this body with the hook's secret")
}

// signatures returns the signatures of a delivery, and what they are to be made of.
func signatures(s groupconfig.Hook, header http.Header, body []byte, now time.Time) (given []string, signed []byte,
	err error) {
	value := header.Get(s.Header)
	if value == "" {
		return nil, nil, fmt.Errorf("the header %s is missing", s.Header)
	}
	switch s.Kind {
	case groupconfig.HookStripe:
		at := ""
		for part := range strings.SplitSeq(value, ",") {
			switch key, value, _ := strings.Cut(strings.TrimSpace(part), "="); key {
			case "t":
				at = value
			case "v1":
				given = append(given, value)
			}
		}
		return given, signedText(s.Kind, "", at, body), checkTime(at, now)
	case groupconfig.HookStandard:
		at := header.Get("Webhook-Timestamp")
		return strings.Fields(value), signedText(s.Kind, header.Get(s.IDHeader), at, body), checkTime(at, now)
	case groupconfig.HookBearer:
		if n := len(s.Prefix); len(value) > n && strings.EqualFold(value[:n], s.Prefix) {
			value = s.Prefix + value[n:]
		}
	}
	return []string{value}, body, nil
}

// signedText is what senders of a kind sign.
func signedText(kind groupconfig.HookKind, id, at string, body []byte) []byte {
	switch kind {
	case groupconfig.HookStripe:
		return append([]byte(at+"."), body...)
	case groupconfig.HookStandard:
		return append([]byte(id+"."+at+"."), body...)
	}
	return body
}

// checkTime returns an error for a time, in unix seconds, that is not about now: the delivery may be a copy.
func checkTime(text string, now time.Time) error {
	at, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return fmt.Errorf("its time %.40q is no unix time in seconds", text)
	}
	if off := now.Sub(time.Unix(at, 0)).Abs(); off > tolerance {
		return fmt.Errorf("its time is %s from that of this machine, more than %s", off.Round(time.Second), tolerance)
	}
	return nil
}

// sign is the signature of a text with a secret, or the token, as it is in the header.
func sign(s groupconfig.Hook, secret string, text []byte) string {
	if token(s.Kind) {
		return s.Prefix + secret
	}
	key, of := []byte(secret), sha256.New
	if s.Kind == groupconfig.HookStandard {
		if decoded, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, standardPrefix)); err == nil {
			key = decoded
		}
	}
	switch s.Algorithm {
	case "sha1":
		of = sha1.New
	case "sha512":
		of = sha512.New
	}
	mac := hmac.New(of, key)
	mac.Write(text)
	if s.Encoding == "base64" {
		return s.Prefix + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return s.Prefix + hex.EncodeToString(mac.Sum(nil))
}

// Sign returns the headers of a delivery with an event and an id, as its sender would send it.
func Sign(h groupconfig.Hook, secret, event, id string, body []byte, now time.Time) http.Header {
	s, at, header := schemeOf(h), strconv.FormatInt(now.Unix(), 10), http.Header{"Content-Type": {"application/json"}}
	signature := sign(s, secret, signedText(h.Kind, id, at, body))
	header.Set(s.IDHeader, id)
	switch h.Kind {
	case groupconfig.HookGitHub:
		header.Set("X-Github-Event", event)
	case groupconfig.HookStripe:
		signature = "t=" + at + ",v1=" + signature
	case groupconfig.HookStandard:
		header.Set("Webhook-Timestamp", at)
	}
	header.Set(s.Header, signature)
	return header
}

// DeliveryID returns the id that the sender gives a delivery, the same for each try; "" if it gives none. payload is
// the body as JSON.
func DeliveryID(h groupconfig.Hook, header http.Header, payload any) string {
	id := header.Get(schemeOf(h).IDHeader)
	switch h.Kind {
	case groupconfig.HookGitLab:
		id = cmp.Or(id, header.Get("X-Gitlab-Event-Uuid"))
	case groupconfig.HookStripe:
		id = Text(payload, "id")
	}
	return id
}

// Event returns the kind of event of a delivery with its action, as issues.opened; "" if it says none.
func Event(h groupconfig.Hook, header http.Header, payload any) string {
	event, action := cmp.Or(Text(payload, "type"), Text(payload, "event")), ""
	switch h.Kind {
	case groupconfig.HookGitHub:
		event, action = header.Get("X-Github-Event"), Text(payload, "action")
	case groupconfig.HookGitLab:
		event, action = Text(payload, "object_kind"), Text(payload, "object_attributes.action")
	}
	if event != "" && action != "" {
		event += "." + action
	}
	return strings.Map(func(c rune) rune {
		if c > ' ' && c < 0x7f {
			return c
		}
		return '_'
	}, event[:min(len(event), maxEvent)])
}

// maxEvent bounds the name of an event, in bytes.
const maxEvent = 100

// Text is the value at a dotted path of a JSON value, as text: "" if there is none, or it is an object or a list.
// A number is an index of a list.
func Text(payload any, path string) string {
	for name := range strings.SplitSeq(path, ".") {
		switch v := payload.(type) {
		case map[string]any:
			payload = v[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(v) {
				return ""
			}
			payload = v[i]
		default:
			return ""
		}
	}
	switch payload.(type) {
	case nil, map[string]any, []any:
		return ""
	}
	return fmt.Sprint(payload)
}
