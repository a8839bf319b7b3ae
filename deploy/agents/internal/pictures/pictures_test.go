package pictures

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each is small enough, all together would be more than a request may have.
func TestOf_LargeImages_AreBoundedTogether(t *testing.T) {
	folder, img, n := t.TempDir(), image.NewNRGBA(image.Rect(0, 0, 960, 960)), uint32(1)
	for i := range img.Pix {
		n = n*1664525 + 1013904223
		img.Pix[i] = byte(n >> 24)
	}
	var file bytes.Buffer
	if err := png.Encode(&file, img); err != nil {
		t.Fatal(err)
	}
	var prompt, logged strings.Builder
	for i := range Max {
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprint(i)), file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&prompt, `<attachment path="%d" mime="image/png"/>`, i)
	}
	all := Of(prompt.String(), folder, func(format string, args ...any) { fmt.Fprintf(&logged, format, args...) })
	if size := len(all) * file.Len(); size > maxTotal || len(all) < 3 || !strings.Contains(logged.String(), "image 9 is not in the prompt") {
		t.Errorf("%d images, %d bytes; log %s", len(all), size, logged.String())
	}
}

func TestShrink_Pixels_AreMeans(t *testing.T) {
	from := image.NewGray(image.Rect(1, 1, 6, 4)) // with a rest of one column and one row
	for i := range from.Pix {
		from.Pix[i] = byte(i % 2 * 200)
	}
	to := shrink(from, 2)
	if to.Bounds() != image.Rect(0, 0, 2, 1) {
		t.Errorf("bounds %v", to.Bounds())
	}
	if c := color.GrayModel.Convert(to.At(1, 0)); c != (color.Gray{Y: 100}) {
		t.Errorf("color %v", c)
	}
}
