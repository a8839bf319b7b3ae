package main

import (
	"bytes"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"arizuko/deploy/agents/internal/pictures"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/agentproto/agenttest"
)

// picture is an image file of a format, of random enough pixels if noisy.
func picture(t *testing.T, format string, width, height int, noisy bool) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	n := uint32(1)
	for i := range img.Pix {
		img.Pix[i] = 0xff
		if noisy && i%4 != 3 {
			n = n*1664525 + 1013904223
			img.Pix[i] = byte(n >> 24)
		}
	}
	var out bytes.Buffer
	var err error
	switch format {
	case "png":
		err = png.Encode(&out, img)
	case "jpeg":
		err = jpeg.Encode(&out, img, nil)
	case "gif":
		err = gif.Encode(&out, img, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// attach is an order with files attached. Each is put into the folder, unless its content is nil.
func attach(t *testing.T, folder, order string, files map[string][]byte) string {
	t.Helper()
	var all strings.Builder
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if content := files[path]; content != nil {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, path)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, path), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		mime := "image/x"
		if strings.HasSuffix(path, ".txt") {
			mime = "text/plain"
		}
		fmt.Fprintf(&all, `<attachment path="%s" name="x" mime="%s" size="1"/>`, strings.ReplaceAll(path, "&", "&amp;"), mime)
	}
	return strings.Replace(agenttest.Prompt(order), "</message>", all.String()+"</message>", 1)
}

func TestPrompt_Images_AreInIt(t *testing.T) {
	png32 := picture(t, "png", 3, 2, false)
	outside := filepath.Join(t.TempDir(), "secret.png")
	if err := os.WriteFile(outside, png32, 0o600); err != nil {
		t.Fatal(err)
	}
	s := fake(t).open()
	if err := os.Symlink(outside, filepath.Join(s.folder, "link.png")); err != nil {
		t.Fatal(err)
	}
	in := agenttest.First("1", "", "")
	in.Prompt = attach(t, s.folder, "images", map[string][]byte{
		"inbox/a & b.png":   png32,
		"inbox/b.jpg":       picture(t, "jpeg", 5000, 10, false), // too wide
		"inbox/c.gif":       picture(t, "gif", 4, 4, false),
		"inbox/d.png":       picture(t, "png", 1500, 1500, true), // too large
		"inbox/e.png":       png32[:len(png32)-20],               // broken
		"inbox/f.txt":       png32,
		"inbox/g.png":       nil, // not there
		"inbox/h.webp":      []byte("RIFF????WEBPVP8 "),
		"link.png":          nil,
		"../other/ours.png": nil,
	})
	in.Prompt = `<reply_chain><message id="0"><attachment path="inbox/a &amp; b.png" mime="image/png"/></message></reply_chain>` + in.Prompt
	s.Send(in, agenttest.Further("2", "images"), agentproto.Message{TurnID: "3", Prompt: attach(t, s.folder, "prompt", map[string][]byte{"i.png": png32})})
	s.WantAnswer("1", `["png 3x2" "jpeg 1666x3" "gif 4x4"]`)
	s.WantAnswer("2", "[]")
	if f := s.Next(); !strings.HasSuffix(f.Result, `<image path="i.png"/>`) {
		t.Errorf("got %+v", f)
	}
	s.wantExit(0)
	for _, path := range []string{"d.png", "e.png", "g.png", "h.webp", "link.png", "ours.png"} {
		if !strings.Contains(s.Log.String(), path+" is not in the prompt, only its path") {
			t.Errorf("the log does not name %s", path)
		}
	}
}

func TestPrompt_ManyImages_AreBounded(t *testing.T) {
	files := map[string][]byte{}
	for i := range pictures.Max + 2 {
		files[fmt.Sprintf("%02d.png", i)] = picture(t, "png", i+1, 1, false)
	}
	s := fake(t).open()
	in := agenttest.First("1", "", "")
	in.Prompt = attach(t, s.folder, "images", files)
	s.Send(in)
	if f := s.Next(); strings.Count(f.Result, "png") != pictures.Max {
		t.Errorf("got %+v", f)
	}
	s.wantExit(0)
}

// The fake ends with an error at an image that it does not take.
func TestPrompt_AgentWithoutImages_GetsPaths(t *testing.T) {
	s := fake(t, "no-image").open()
	in := agenttest.First("1", "", "")
	in.Prompt = attach(t, s.folder, "prompt", map[string][]byte{"a.png": picture(t, "png", 3, 2, false)})
	s.Send(in)
	s.WantAnswer("1", in.Prompt)
	s.wantExit(0)
}

func TestPrompt_Steering_HasImages(t *testing.T) {
	s := fake(t, "steering").open()
	s.Send(agenttest.First("1", "", "tool steered"))
	s.busy()
	two := agentproto.Message{TurnID: "2", Fold: true, Prompt: attach(t, s.folder, "two", map[string][]byte{"a.png": picture(t, "png", 3, 2, false)})}
	s.Send(two)
	if f := s.Next(); !strings.Contains(f.Result, "png 3x2") || !slices.Equal(f.TurnIDs, []string{"1", "2"}) {
		t.Errorf("got %+v", f)
	}
	s.wantExit(0)
}
