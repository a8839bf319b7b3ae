package login

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestOneTime_Tokens(t *testing.T) {
	var o oneTime
	now := time.Unix(1_800_000_000, 0)
	if o.use("", now) {
		t.Error("none can be used before there is one")
	}
	token := o.token(now)
	for _, other := range []string{"", token[1:], token + "=", strings.ToLower(token)} {
		if o.use(other, now) {
			t.Errorf("%q can be used for %q", other, token)
		}
	}
	if again := o.token(now); again != token {
		t.Error("the unused token was replaced")
	}
	if !o.use(token, now) || o.use(token, now) {
		t.Error("it cannot be used once, or can be twice")
	}
}

func TestLocalPath_OtherSites_LeadHome(t *testing.T) {
	for next, want := range map[string]string{
		"/chat/a/b?c=d#e": "/chat/a/b?c=d#e", "/": "/", "/chat/ä": "/chat/ä", "/a//b": "/a//b", "/login": "/login", "/?next=http://a.b": "/?next=http://a.b",
		"": home, "chat": home, "//evil": home, "///evil": home, "/\\evil": home, "\\\\evil": home, "/a\\b": home, "http://evil": home, "http:evil": home,
		"javascript:alert(1)": home, " /a": home, " //evil": home, "/\t/evil": home, "\t//evil": home, "/\n/evil": home, "/a\r\nSet-Cookie: b": home, "/\x00": home,
		"/a%zz": home, "/a\x7f": home, "/a#\nb": home, "/" + strings.Repeat("a", maxNext): home, "@evil": home, "?a": home, "#a": home,
	} {
		if got := localPath(next); got != want {
			t.Errorf("%q: %q", next, got)
		}
	}
}

func TestVerify_OtherFormats_Refused(t *testing.T) {
	s := newSigner("secret", "")
	cookie := s.sign(newSession(time.Unix(1_800_000_000, 0)))
	if _, ok := s.verify(cookie); !ok {
		t.Fatalf("%q was not made by this login", cookie)
	}
	_, body, _ := strings.Cut(cookie[:strings.LastIndexByte(cookie, '.')], ".")
	for _, signed := range []string{"v2." + body, "v1", "v1.", "v1.!", "v1.bm8", "v1.e30", ""} {
		forged := signed + "." + base64.RawURLEncoding.EncodeToString(s.mac(signed))
		if session, ok := s.verify(forged); ok {
			t.Errorf("%q: %+v", signed, session)
		}
	}
}

// landsOn returns the host that a browser opens, by the rules of the URL standard: control characters
// and spaces around are dropped, tabs and newlines everywhere, backslashes are slashes.
func landsOn(next string) (string, error) {
	next = strings.TrimFunc(next, func(c rune) bool { return c <= ' ' })
	next = strings.NewReplacer("\t", "", "\n", "", "\r", "", `\`, "/").Replace(next)
	base := url.URL{Scheme: "http", Host: "dash", Path: "/login"}
	target, err := base.Parse(next)
	if err != nil {
		return "", err
	}
	return target.Scheme + "://" + target.Host, nil
}

func TestLocalPath_AnyNext_SameHost(t *testing.T) {
	pieces := []string{"/", "\\", ":", "@", "?", "#", "%", ".", "..", "\t", "\n", "\r", " ", "\x00", "\x7f", "http:", "javascript:", "evil.example", "%2f", "%5c", "ä", "\u2028", "\u3002"}
	rapid.Check(t, func(rt *rapid.T) {
		next := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 8).Draw(rt, "next"), "")
		if host, err := landsOn(localPath(next)); err != nil || host != "http://dash" {
			rt.Errorf("%q: to %s, %v", next, host, err)
		}
	})
}

func FuzzLocalPath(f *testing.F) {
	for _, seed := range []string{"/chat/", "//a", "/\\a", "/\t/a", "http://a", "/%2f/a", "/a?b=//c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, next string) {
		if host, err := landsOn(localPath(next)); err != nil || host != "http://dash" {
			t.Errorf("%q: to %s, %v", next, host, err)
		}
	})
}
