// SPDX-License-Identifier: Apache-2.0

package image

import (
	"regexp"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// platform is which image of an index is wanted.
type platform struct {
	want   v1.Platform
	stated bool // by the user, rather than by default
}

// platformText is "os/architecture" or "os/architecture/variant".
var platformText = regexp.MustCompile(`^[a-z0-9]{1,32}/[a-z0-9_]{1,32}(/[a-z0-9.]{1,32})?$`)

func parsePlatform(text string) (platform, error) {
	if text == "" {
		return platform{want: v1.Platform{OS: "linux", Architecture: "amd64"}}, nil
	}
	if !platformText.MatchString(text) {
		return platform{}, fetch.Errorf(fetch.Refused, "the platform %s is malformed: write os/architecture, as linux/amd64",
			fetch.Quote(text))
	}
	parts := append(strings.Split(text, "/"), "")
	return platform{want: v1.Platform{OS: parts[0], Architecture: parts[1], Variant: parts[2]}, stated: true}, nil
}

// choose picks the image of an index. The first one with the wanted platform is taken; if there is none, the only
// image, unless the user stated a platform and the image states another. Attestations do not count.
func (p platform) choose(manifests []v1.Descriptor) (v1.Descriptor, error) {
	images := slices.DeleteFunc(slices.Clone(manifests), func(m v1.Descriptor) bool {
		return !m.MediaType.IsImage() || isAttestation(m)
	})
	for _, image := range images {
		if image.Platform != nil && image.Platform.Satisfies(p.want) {
			return image, nil
		}
	}
	if len(images) == 1 && (!p.stated || platformOf(images[0]) == noPlatform) {
		return images[0], nil
	}
	return v1.Descriptor{}, fetch.Errorf(fetch.InvalidContent, "the index has no image for %s: found %s; set the platform",
		p.want, list(images))
}

// isAttestation tells the statements that BuildKit stores beside images from the images.
func isAttestation(m v1.Descriptor) bool {
	_, annotated := m.Annotations["vnd.docker.reference.type"]
	return annotated || m.Platform != nil && m.Platform.OS == "unknown"
}

// noPlatform stands for an image without a platform in the index.
const noPlatform = "an image without a platform"

func platformOf(m v1.Descriptor) string {
	if m.Platform == nil || m.Platform.String() == "" {
		return noPlatform
	}
	return m.Platform.String()
}

// maxListed bounds the platforms that a message lists.
const maxListed = 20

func list(images []v1.Descriptor) string {
	if len(images) == 0 {
		return "no image at all"
	}
	texts := make([]string, 0, maxListed+1)
	for _, m := range images {
		if len(texts) == maxListed {
			texts = append(texts, "and more")
			break
		}
		texts = append(texts, strings.Trim(fetch.Quote(platformOf(m)), `"`))
	}
	slices.Sort(texts)
	return strings.Join(slices.Compact(texts), ", ")
}
