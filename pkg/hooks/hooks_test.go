package hooks

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/groupconfig"
)

// vectors are the examples that senders publish: in GitHub's documentation and in the tests of Standard Webhooks.
// Stripe publishes none with a result; its scheme is that of the documentation's recipe, and its own library signs in
// deploy/e2e/clients.
func TestVerify_PublishedVectors(t *testing.T) {
	const standard = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	for name, tc := range map[string]struct {
		kind   groupconfig.HookKind
		secret string
		header map[string]string
		body   string
		now    int64
	}{
		"github": {groupconfig.HookGitHub, "It's a Secret to Everybody", map[string]string{"X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}, "Hello, World!", 0},
		"standard": {groupconfig.HookStandard, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", map[string]string{"Webhook-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
			"Webhook-Timestamp": "1614265330", "Webhook-Signature": standard}, `{"test": 2432232314}`, 1614265330},
		"standard, of several signatures": {groupconfig.HookStandard, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", map[string]string{"Webhook-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
			"Webhook-Timestamp": "1614265330", "Webhook-Signature": "v1,AAAA v1a,BBBB " + standard}, `{"test": 2432232314}`, 1614265630},
	} {
		t.Run(name, func(t *testing.T) {
			header := http.Header{}
			for k, v := range tc.header {
				header.Set(k, v)
			}
			h, now := groupconfig.Hook{Kind: tc.kind}, time.Unix(tc.now, 0)
			if err := Verify(h, []string{"another secret", tc.secret}, header, []byte(tc.body), now); err != nil {
				t.Error(err)
			}
			if Verify(h, []string{"another secret"}, header, []byte(tc.body), now) == nil {
				t.Error("it passes with another secret")
			}
			if Verify(h, []string{tc.secret}, header, []byte(tc.body+" "), now) == nil {
				t.Error("a changed body passes")
			}
		})
	}
}

func TestSign_IsVerified_AndNothingElseIs(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, h := range []groupconfig.Hook{
		{Kind: groupconfig.HookGitHub}, {Kind: groupconfig.HookGitLab}, {Kind: groupconfig.HookStripe}, {Kind: groupconfig.HookStandard}, {Kind: groupconfig.HookBearer},
		{Kind: groupconfig.HookHMAC, Header: "X-Sig"}, {Kind: groupconfig.HookHMAC, Header: "X-Sig", Algorithm: "sha1", Encoding: "base64", Prefix: "a="}, {Kind: groupconfig.HookHMAC, Header: "X-Sig", Algorithm: "sha512"},
	} {
		t.Run(string(h.Kind)+h.Algorithm, func(t *testing.T) {
			event, body, err := Sample(h.Kind, "")
			if err != nil {
				t.Fatal(err)
			}
			secret := NewSecret(h.Kind)
			header := Sign(h, secret, event, "id-1", body, now)
			if err := Verify(h, []string{secret}, header, body, now.Add(tolerance)); err != nil {
				t.Error(err)
			}
			timed := h.Kind == groupconfig.HookStripe || h.Kind == groupconfig.HookStandard
			for _, at := range []time.Time{now.Add(tolerance + time.Second), now.Add(-tolerance - time.Second)} {
				if err := Verify(h, []string{secret}, header, body, at); (err != nil) != timed {
					t.Errorf("%s later: %v", at.Sub(now), err)
				}
			}
			token := h.Kind == groupconfig.HookGitLab || h.Kind == groupconfig.HookBearer
			if err := Verify(h, []string{secret}, header, append(body, ' '), now); (err != nil) == token {
				t.Errorf("a changed body: %v", err)
			}
			for _, secrets := range [][]string{nil, {NewSecret(h.Kind)}, {secret + "x"}} {
				if Verify(h, secrets, header, body, now) == nil {
					t.Errorf("passes with %q", secrets)
				}
			}
			if Verify(h, []string{secret}, http.Header{}, body, now) == nil {
				t.Error("passes without a header")
			}
			for _, value := range []string{"", "x", "t=1", "v1,", "Bearer", "Bearer ", "t=,v1=", strings.Repeat("é", 100)} {
				forged := header.Clone()
				forged.Set(schemeOf(h).Header, value)
				if Verify(h, []string{secret}, forged, body, now) == nil {
					t.Errorf("%q passes", value)
				}
			}
		})
	}
}

func TestEvent_DeliveryID_AsTheSenderNamesThem(t *testing.T) {
	for kind, want := range map[groupconfig.HookKind]string{
		groupconfig.HookGitHub: "check_run.completed id-1", groupconfig.HookGitLab: "issue.open id-1", groupconfig.HookStripe: "invoice.payment_failed evt_1",
		groupconfig.HookStandard: "contact.created id-1", groupconfig.HookHMAC: "test id-1", groupconfig.HookBearer: "test id-1",
	} {
		h := groupconfig.Hook{Kind: kind, Header: "X-Sig"}
		event, body, err := Sample(kind, "")
		if err != nil {
			t.Fatal(err)
		}
		payload := decode(t, body)
		if kind == groupconfig.HookStripe {
			payload.(map[string]any)["id"] = "evt_1"
		}
		header := Sign(h, "a secret", event, "id-1", body, time.Unix(0, 0))
		if got := Event(h, header, payload) + " " + DeliveryID(h, header, payload); got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
}

func TestSecrets_Rotated_OldOneCountsForAWhile(t *testing.T) {
	data, now := t.TempDir(), time.UnixMilli(1_800_000_000_000)
	set := func(secret string, overlap time.Duration) {
		t.Helper()
		if err := SetSecret(data, "abc", secret, overlap, now); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want ...string) {
		t.Helper()
		got, err := Secrets(data, "abc", now)
		if !slices.Equal(got, want) || (err != nil) != (len(want) == 0) {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	expect()
	set("the first one", 0)
	set("the second", time.Hour)
	expect("the second", "the first one")
	set("the third one", 2*time.Hour) // the first one still ends after one
	now = now.Add(time.Hour)
	expect("the third one", "the second")
	set("the fourth one", 0)
	expect("the fourth one")
	if info, err := os.Stat(filepath.Join(data, folder, "abc")); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	for _, bad := range []string{"", "short", "two\nlines of it", "a tab\tin it", strings.Repeat("x", maxSecret+1)} {
		if SetSecret(data, "abc", bad, 0, now) == nil {
			t.Errorf("%.20q is taken", bad)
		}
	}
	if err := errors.Join(RemoveSecrets(data, "abc"), RemoveSecrets(data, "abc")); err != nil {
		t.Error(err)
	}
	if _, err := Secrets(data, "abc", now); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(data, folder, "link")); err != nil {
		t.Fatal(err)
	}
	if got, err := Secrets(data, "link", now); err == nil {
		t.Errorf("a link is read: %q", got)
	}
}

func decode(t *testing.T, body []byte) (payload any) {
	t.Helper()
	if err := json.Unmarshal(body, &payload); err != nil {
		t.Fatal(err)
	}
	return payload
}
