// Package pictures reads the images of a prompt for agents that take them.
package pictures

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/gif" // a format that models take
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"slices"
	"strings"

	"arizuko/pkg/agentproto"
)

// Max is how many images a prompt has.
const Max = 10

// Limits of images in a prompt. The files of others are for the agent to open, by their paths. An image that a model's
// API refuses stays in the session and fails each later turn, so these are the narrowest known, those of Claude: 5 MB
// in base64, and 2000 pixels a side where a request has more than 20 images. A request
// has 32 MB at most.
const (
	maxImageFile = 20 << 20          // bytes
	maxImage     = 5_000_000 / 4 * 3 // bytes, before base64
	maxTotal     = 15_000_000        // bytes of all in a prompt, before base64
	maxSide      = 2000              // pixels; larger ones are made smaller
	maxPixels    = 50_000_000        // of a file; decoded, these are 200 MB
	jpegQuality  = 85
)

// Picture is an image of a prompt, as models take it.
type Picture struct {
	Label string // text that names its path, for before it
	MIME  string
	Data  string // base64
}

// Of are the images that messages of a prompt have attached, read in a folder. One that cannot be given is logged.
func Of(prompt, folder string, log func(format string, args ...any)) (all []Picture) {
	paths, room := imagePaths(prompt), maxTotal
	for _, path := range paths[:min(len(paths), Max)] {
		data, mime, err := readImage(folder, path)
		if err == nil && len(data) > room {
			err = errors.New("the images before it are large")
		}
		if err != nil {
			log("image %s is not in the prompt, only its path: %v", path, err)
			continue
		}
		room -= len(data)
		var name strings.Builder
		_ = xml.EscapeText(&name, []byte(path)) // a builder does not fail
		all = append(all, Picture{Label: agentproto.Inert(fmt.Sprintf(`<image path="%s"/>`, name.String())), MIME: mime,
			Data: base64.StdEncoding.EncodeToString(data)})
	}
	return all
}

// imagePaths are the paths of the images that messages of a prompt have attached, each once.
func imagePaths(prompt string) (paths []string) {
	in := xml.NewDecoder(strings.NewReader(prompt))
	for {
		token, err := in.Token()
		if err != nil {
			return paths // its end
		}
		element, is := token.(xml.StartElement)
		if !is || element.Name.Local != "attachment" {
			continue
		}
		attrs := map[string]string{}
		for _, a := range element.Attr {
			attrs[a.Name.Local] = a.Value
		}
		if path := attrs["path"]; path != "" && strings.HasPrefix(attrs["mime"], "image/") &&
			!slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
}

// readImage reads an image of a folder, made smaller if need be. The whole of it is decoded, since a model's API may
// refuse a broken one only when it is in the session.
func readImage(folder, path string) (data []byte, mime string, err error) {
	data, err = readFile(folder, path)
	if err != nil {
		return nil, "", err
	}
	size, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, "", err
	}
	if size.Width*size.Height > maxPixels {
		return nil, "", fmt.Errorf("it has %d × %d pixels", size.Width, size.Height)
	}
	decoded, format, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, "", err
	}
	if factor := (max(size.Width, size.Height) + maxSide - 1) / maxSide; factor > 1 {
		if data, format, err = encode(shrink(decoded, factor), format); err != nil {
			return nil, "", err
		}
	}
	if len(data) > maxImage {
		return nil, "", fmt.Errorf("it has %d bytes", len(data))
	}
	return data, "image/" + format, nil
}

// readFile reads a regular file of a folder.
func readFile(folder, path string) ([]byte, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxImageFile:
		return nil, errors.New("it is not a regular file, or too large")
	}
	file, err := root.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxImageFile))
}

// encode keeps JPEG, which suits photos. The rest becomes PNG.
func encode(img image.Image, format string) ([]byte, string, error) {
	var out bytes.Buffer
	if format == "jpeg" {
		err := jpeg.Encode(&out, img, &jpeg.Options{Quality: jpegQuality})
		return out.Bytes(), format, err
	}
	err := png.Encode(&out, img)
	return out.Bytes(), "png", err
}

// shrink makes an image whose pixels are each the mean of factor × factor ones.
func shrink(from image.Image, factor int) image.Image {
	b := from.Bounds()
	to := image.NewRGBA64(image.Rect(0, 0, max(b.Dx()/factor, 1), max(b.Dy()/factor, 1)))
	for y := range to.Rect.Dy() {
		for x := range to.Rect.Dx() {
			to.SetRGBA64(x, y, mean(from, image.Rect(0, 0, factor,
				factor).Add(b.Min).Add(image.Pt(x*factor, y*factor)).Intersect(b)))
		}
	}
	return to
}

func mean(of image.Image, part image.Rectangle) color.RGBA64 {
	var sum [4]uint32 // at most factor² × 0xffff
	for y := part.Min.Y; y < part.Max.Y; y++ {
		for x := part.Min.X; x < part.Max.X; x++ {
			r, g, b, a := of.At(x, y).RGBA()
			sum[0], sum[1], sum[2], sum[3] = sum[0]+r, sum[1]+g, sum[2]+b, sum[3]+a
		}
	}
	n := uint32(part.Dx() * part.Dy()) //nolint:gosec // 1 to maxPixels
	return color.RGBA64{R: uint16(sum[0] / n), G: uint16(sum[1] / n), B: uint16(sum[2] / n),
		A: uint16(sum[3] / n)} //nolint:gosec // means of 16 bits
}
