package tour_test

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"slices"
)

// maxColors is how many colours a picture has: pages have few, and the edges of letters shades between them.
const maxColors = 64

// compact encodes a picture with few colours: the most frequent ones, and for the others the nearest of them.
func compact(screenshot []byte) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(screenshot))
	if err != nil {
		return nil, err
	}
	bounds := full.Bounds()
	count := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(full.At(x, y)).(color.RGBA) }
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	frequent := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(number(a), number(b)))
	})
	palette := make(color.Palette, 0, maxColors)
	for _, c := range frequent[:min(len(frequent), maxColors)] {
		palette = append(palette, c)
	}
	nearest := map[color.RGBA]uint8{}
	for c := range count {
		nearest[c] = uint8(palette.Index(c)) //nolint:gosec // below maxColors
	}
	few := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			few.SetColorIndex(x, y, nearest[at(x, y)])
		}
	}
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, few)
	return out.Bytes(), err
}

func number(c color.RGBA) int { return int(c.R)<<16 | int(c.G)<<8 | int(c.B) }
