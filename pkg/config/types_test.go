package config_test

import (
	"fmt"
	"strings"
	"testing"

	"arizuko/pkg/config"
)

func TestAddrURL(t *testing.T) {
	for addr, want := range map[config.Addr]config.URL{
		":8080": "http://127.0.0.1:8080", "0.0.0.0:1": "http://127.0.0.1:1", "[::]:2": "http://127.0.0.1:2",
		"127.0.0.1:3": "http://127.0.0.1:3", "gated:4": "http://gated:4", "[::1]:5": "http://[::1]:5",
	} {
		if got := addr.URL(); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
}

func TestAddr_Invalid_ReturnsError(t *testing.T) {
	for _, text := range []string{"", "8080", "host", "::1:80", "h:65536", "h:-1", "h:", "h:http", "h:1:2"} {
		var a config.Addr
		if a.UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestURL(t *testing.T) {
	for text, want := range map[string]config.URL{
		"http://a:1": "http://a:1", "https://a/base//": "https://a/base",
		"": "", "a:1": "", "ftp://a": "", "http://": "", "/path": "", "http://a?q=1": "", "http://a#f": "", "http://u:p@a": "", "http://a\x00": "",
	} {
		var u config.URL
		err := u.UnmarshalText([]byte(text))
		if u != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", text, u, err, want)
		}
	}
	if got := config.URL("").Or(":9"); got != "http://127.0.0.1:9" {
		t.Errorf("Or = %s", got)
	}
	if got := config.URL("http://x").Or(":9"); got != "http://x" {
		t.Errorf("Or = %s", got)
	}
}

func TestOperators(t *testing.T) {
	for text, want := range map[string]int{
		"telegram:42": 1, "discord:80351110224678912, slack:U0AB12": 2, "slack:W0AB": 1, "web:operator": 1, "matrix:@ada:example.org": 1, "": 0,
		"telegram+work:42,telegram:42": 2, "slack+2:U0AB": 1, "telegram+work:@ada": -1, "slack+work:ada": -1, "telegram+:42": -1, "telegram+Work:42": -1,
		"42": -1, "telegram:": -1, ":42": -1, "telegram:@ada": -1, "telegram:42,discord:ada": -1, "slack:ada": -1, "slack:u0ab": -1, "slack:C0AB": -1, "telegram:42,": -1,
	} {
		var o config.Operators
		err := o.UnmarshalText([]byte(text))
		if (err == nil) != (want >= 0) || err == nil && len(o) != want {
			t.Errorf("%q: %v, %v", text, o, err)
		}
	}
	var o config.Operators
	if err := o.UnmarshalText([]byte("telegram:42,telegram:@ada")); err == nil || !strings.Contains(err.Error(), `"telegram:@ada" is no id of telegram`) {
		t.Errorf("got %v", err)
	}
}

func TestNetworks(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.1": "[192.0.2.1/32]", "10.1.2.3/8, ::1": "[10.0.0.0/8 ::1/128]", "::ffff:192.0.2.1": "[192.0.2.1/32]",
		"fc00::/7": "[fc00::/7]", "::ffff:10.0.0.0/104": "[10.0.0.0/8]",
		"0.0.0.0/0": "", "::/0": "", "127.0.0.1,0.0.0.0/1": "", "::ffff:0.0.0.0/96": "", "2000::/3": "",
		"nginx": "", "10.0.0.0/33": "", "127.0.0.1,": "", "127.0.0.1:80": "",
	} {
		var n config.Networks
		err := n.UnmarshalText([]byte(text))
		if (err == nil) != (want != "") || err == nil && fmt.Sprint(n) != want {
			t.Errorf("%q: %v, %v; want %s", text, n, err, want)
		}
	}
}
