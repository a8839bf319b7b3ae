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
	"hash"
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
	bearerPrefix   = "Bearer "
)

// Verify returns why a delivery is not of a sender that has one of the secrets, nil if it is. It compares in constant
// time, over the raw body.
func Verify(h groupconfig.Hook, secrets []string, header http.Header, body []byte, now time.Time) error {
	given, signed, err := signatures(h, header, body, now)
	if err != nil {
		return err
	}
	for _, secret := range secrets {
		want := sign(h, secret, signed)
		for _, signature := range given {
			if subtle.ConstantTimeCompare([]byte(signature), []byte(want)) == 1 {
				return nil
			}
		}
	}
	if h.Kind == groupconfig.HookGitLab || h.Kind == groupconfig.HookBearer {
		return errors.New("the token is another one than the hook's")
	}
	return errors.New("the signature is not one of this body with the hook's secret")
}

// signatures returns the signatures of a delivery, and what they are to be made of.
func signatures(h groupconfig.Hook, header http.Header, body []byte, now time.Time) (given []string, signed []byte,
	err error) {
	name := header.Get(signatureHeader(h))
	if name == "" {
		return nil, nil, fmt.Errorf("the header %s is missing", signatureHeader(h))
	}
	switch h.Kind {
	case groupconfig.HookStripe:
		at := ""
		for part := range strings.SplitSeq(name, ",") {
			key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			switch key {
			case "t":
				at = value
			case "v1":
				given = append(given, value)
			}
		}
		return given, append([]byte(at+"."), body...), checkTime(at, now)
	case groupconfig.HookStandard:
		at := header.Get("Webhook-Timestamp")
		return strings.Fields(name), append([]byte(header.Get("Webhook-Id")+"."+at+"."), body...), checkTime(at, now)
	case groupconfig.HookBearer:
		if len(name) < len(bearerPrefix) || !strings.EqualFold(name[:len(bearerPrefix)], bearerPrefix) {
			return nil, nil, errors.New("the header Authorization must be Bearer and the token")
		}
		return []string{bearerPrefix + name[len(bearerPrefix):]}, nil, nil
	}
	return []string{name}, body, nil
}

// signatureHeader is the header with the signature or token.
func signatureHeader(h groupconfig.Hook) string {
	return map[groupconfig.HookKind]string{
		groupconfig.HookGitHub: "X-Hub-Signature-256", groupconfig.HookGitLab: "X-Gitlab-Token",
		groupconfig.HookStripe: "Stripe-Signature", groupconfig.HookStandard: "Webhook-Signature",
		groupconfig.HookHMAC: h.Header, groupconfig.HookBearer: "Authorization",
	}[h.Kind]
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

// sign is the signature of a text with a secret, as it is in the header.
func sign(h groupconfig.Hook, secret string, text []byte) string {
	mac := func(of func() hash.Hash, key string) []byte {
		m := hmac.New(of, []byte(key))
		m.Write(text)
		return m.Sum(nil)
	}
	switch h.Kind {
	case groupconfig.HookGitHub:
		return "sha256=" + hex.EncodeToString(mac(sha256.New, secret))
	case groupconfig.HookGitLab:
		return secret
	case groupconfig.HookBearer:
		return bearerPrefix + secret
	case groupconfig.HookStripe:
		return hex.EncodeToString(mac(sha256.New, secret))
	case groupconfig.HookStandard:
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, standardPrefix))
		if err != nil {
			key = []byte(secret)
		}
		return "v1," + base64.StdEncoding.EncodeToString(mac(sha256.New, string(key)))
	}
	of := map[string]func() hash.Hash{"sha1": sha1.New, "sha512": sha512.New}[h.Algorithm]
	if of == nil {
		of = sha256.New
	}
	if h.Encoding == "base64" {
		return h.Prefix + base64.StdEncoding.EncodeToString(mac(of, secret))
	}
	return h.Prefix + hex.EncodeToString(mac(of, secret))
}

// Sign returns the headers of a delivery with an event and an id, as its sender would send it.
func Sign(h groupconfig.Hook, secret, event, id string, body []byte, now time.Time) http.Header {
	at, header := strconv.FormatInt(now.Unix(), 10), http.Header{"Content-Type": {"application/json"}}
	signed := body
	switch h.Kind {
	case groupconfig.HookGitHub:
		header.Set("X-Github-Event", event)
		header.Set("X-Github-Delivery", id)
	case groupconfig.HookGitLab:
		header.Set("X-Gitlab-Event", event)
		header.Set("X-Gitlab-Event-Uuid", id)
	case groupconfig.HookStripe:
		header.Set("Stripe-Signature", "t="+at+",v1="+sign(h, secret, append([]byte(at+"."), body...)))
		return header
	case groupconfig.HookStandard:
		header.Set("Webhook-Id", id)
		header.Set("Webhook-Timestamp", at)
		signed = append([]byte(id+"."+at+"."), body...)
	case groupconfig.HookHMAC, groupconfig.HookBearer:
		header.Set(cmp.Or(h.IDHeader, idempotencyKey), id)
	}
	header.Set(signatureHeader(h), sign(h, secret, signed))
	return header
}

// DeliveryID returns the id that the sender gives a delivery, the same for each try; "" if it gives none. payload is
// the body as JSON.
func DeliveryID(h groupconfig.Hook, header http.Header, payload any) string {
	switch h.Kind {
	case groupconfig.HookGitHub:
		return header.Get("X-Github-Delivery")
	case groupconfig.HookGitLab:
		return cmp.Or(header.Get(idempotencyKey), header.Get("X-Gitlab-Event-Uuid"))
	case groupconfig.HookStripe:
		return Text(payload, "id")
	case groupconfig.HookStandard:
		return header.Get("Webhook-Id")
	}
	return header.Get(cmp.Or(h.IDHeader, idempotencyKey))
}

// Event returns the kind of event of a delivery with its action, as issues.opened; "" if it says none.
func Event(h groupconfig.Hook, header http.Header, payload any) string {
	event := ""
	switch h.Kind {
	case groupconfig.HookGitHub:
		event = header.Get("X-Github-Event")
		if action := Text(payload, "action"); action != "" && event != "" {
			event += "." + action
		}
	case groupconfig.HookGitLab:
		event = Text(payload, "object_kind")
		if action := Text(payload, "object_attributes.action"); action != "" && event != "" {
			event += "." + action
		}
	case groupconfig.HookStripe, groupconfig.HookStandard:
		event = Text(payload, "type")
	case groupconfig.HookHMAC, groupconfig.HookBearer:
		event = cmp.Or(Text(payload, "event"), Text(payload, "type"))
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
