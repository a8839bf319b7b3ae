package main

import (
	"io"
	"net/http"
	"path"
	"regexp"
	"testing"
)

func TestAnswers_CompressedOrNot(t *testing.T) {
	data := dataFolder(t)
	p := serve(t, data)
	b := p.operator()
	b.must(202, "POST", "/chat/main/messages", `{"text":"hi"}`)
	asset := regexp.MustCompile(`/assets/[^"]+css`).FindString(b.get("/chat/main").body)
	for _, tt := range []struct {
		call, accept, want string
	}{
		{"GET /", "gzip", "gzip"}, {"GET /", "identity", ""}, {"GET /chat/main", "gzip", "gzip"}, {"GET /chat/main/messages", "gzip, br", "gzip"}, {"GET " + asset, "gzip", "gzip"},
		{"GET /login", "gzip", ""}, {"POST /operators/code", "gzip", ""}, {"GET /events", "gzip", ""}, {"GET /chat/main/events", "gzip", ""}, {"GET /chat/main/file?message=1&n=1", "gzip", ""},
	} {
		method, address := tt.call[:len(tt.call)-len(pathOf(tt.call))-1], pathOf(tt.call)
		res := b.send(method, address, "", "Accept-Encoding: "+tt.accept, "Origin: "+b.base)
		if got := res.Header.Get("Content-Encoding"); got != tt.want {
			t.Errorf("%s with %s: Content-Encoding %q, want %q", tt.call, tt.accept, got, tt.want)
		}
		res.Body.Close()
	}
}

func pathOf(call string) string { return regexp.MustCompile(`/.*`).FindString(call) }

// TestChatPage_FirstLoad_IsSmall adds up what a browser loads to show a chat, as it is sent.
func TestChatPage_FirstLoad_IsSmall(t *testing.T) {
	const most = 60_000 // bytes; 120 kB are the limit with a page of messages
	b := serve(t, dataFolder(t)).operator()
	imported := regexp.MustCompile(`from "\./([a-z-]+\.js)"`)
	sent, seen := 0, map[string]bool{}
	load := func(address string) string {
		if seen[address] {
			return ""
		}
		seen[address] = true
		res := b.send(http.MethodGet, address, "", "Accept-Encoding: gzip")
		compressed, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %v", address, res.Status, err)
		}
		sent += len(compressed)
		return b.get(address).body
	}
	for _, asset := range regexp.MustCompile(`/assets/[^"]+`).FindAllString(load("/chat/main/"), -1) {
		waiting := []string{asset}
		for len(waiting) > 0 {
			next := waiting[0]
			waiting = waiting[1:]
			for _, name := range imported.FindAllStringSubmatch(load(next), -1) {
				waiting = append(waiting, path.Join(path.Dir(next), name[1]))
			}
		}
	}
	if sent > most || len(seen) < 15 {
		t.Errorf("%d files with %d bytes, want at most %d", len(seen), sent, most)
	}
	t.Logf("%d files, %d bytes", len(seen), sent)
}
