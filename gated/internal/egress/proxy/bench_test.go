package proxy

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"arizuko/pkg/egress"
)

// BenchmarkRequest is the time of a request on an open connection: without the proxy, in a tunnel that is passed, in one
// that is opened, and with a secret that is replaced. With "parallel", 32 agents send at once: req/s.
func BenchmarkRequest(b *testing.B) {
	upstream := func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 1000)) }
	for _, kind := range kinds {
		_, client, token := benchWorld(b, kind, upstream)
		send := func(b *testing.B) {
			r, _ := http.NewRequestWithContext(b.Context(), http.MethodPost, "https://api.test/v1/messages", strings.NewReader("hello"))
			r.Header.Set("Authorization", "Bearer "+token)
			if status, body := do(client, r); status != 200 {
				b.Fatal(status, body)
			}
		}
		b.Run(kind, func(b *testing.B) {
			send(b)
			for b.Loop() {
				send(b)
			}
		})
		b.Run(kind+"-parallel", func(b *testing.B) {
			b.SetParallelism(max(1, 32/runtime.GOMAXPROCS(0)))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					send(b)
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
		})
	}
}

// BenchmarkMemory is what 500 open streams take in the proxy, each. What the benchmark's own client and server take is
// measured without the proxy, and left out.
func BenchmarkMemory(b *testing.B) {
	const streams = 500
	upstream := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", 64<<10))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	direct := int64(0)
	for _, kind := range kinds {
		b.Run(kind, func(b *testing.B) {
			for b.Loop() {
				_, client, token := benchWorld(b, kind, upstream)
				before := inUse()
				var all sync.WaitGroup
				bodies := make([]io.ReadCloser, streams)
				for i := range bodies {
					all.Go(func() {
						r, _ := http.NewRequestWithContext(b.Context(), http.MethodGet, fmt.Sprint("https://api.test/?", i), nil)
						r.Header.Set("X-Key", token)
						res, err := client.Do(r)
						if err != nil {
							b.Error(err)
							return
						}
						bodies[i] = res.Body
						_, _ = io.ReadFull(res.Body, make([]byte, 64<<10))
					})
				}
				all.Wait()
				each := (inUse() - before) / streams
				if kind == "direct" {
					direct = each
				}
				b.ReportMetric(float64(each-direct)/1024, "KiB/stream")
				for _, body := range bodies {
					if body != nil {
						body.Close()
					}
				}
			}
		})
	}
}

func inUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

var kinds = []string{"direct", "pass", "opened", "inject"}

// benchWorld is a world with a rule of a kind, and a client of it.
func benchWorld(b *testing.B, kind string, upstream http.HandlerFunc) (w *world, client *http.Client, token string) {
	rule := map[string]egress.Rule{"direct": {Host: "*", Action: egress.Pass}, "pass": {Host: "*", Action: egress.Pass},
		"opened": {Host: "*", Path: "/", Action: egress.Pass}, "inject": {Host: "*", Action: egress.Inject, Secret: "key"}}[kind]
	w = newWorld(b, upstream, rule)
	token = w.setSecret("key", value)
	client = w.client()
	transport := client.Transport.(*http.Transport)
	transport.MaxIdleConnsPerHost = 64
	if kind == "direct" {
		transport.Proxy, transport.DialContext, transport.TLSClientConfig = nil, w.dialUpstream, w.transport.TLSClientConfig.Clone()
	}
	if kind != "inject" {
		token = ""
	}
	return w, client, token
}
