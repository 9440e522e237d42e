// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"io/fs"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

const (
	channelsAnnotation       = "operators.operatorframework.io.bundle.channels.v1"
	defaultChannelAnnotation = "operators.operatorframework.io.bundle.channel.default.v1"
)

// Annotations are what a bundle says about itself beside its manifests. Nothing that is rendered depends on the channels.
type Annotations struct {
	// Package is the name of the OLM package.
	Package string
	// Channels are those in which a catalog offers the bundle, as written; DefaultChannel is one of the package's.
	Channels       []string
	DefaultChannel string
}

// ReadAnnotations reads what can be read; what is wrong with the annotations is found by Parse.
func ReadAnnotations(files fs.FS, limits manifest.Limits) Annotations {
	data, problem := manifest.NewReader(files, limits).ReadFile(AnnotationsFile, "P2")
	if problem != nil {
		return Annotations{}
	}
	var content struct {
		Annotations map[string]any `json:"annotations"`
	}
	if yaml.Unmarshal(data, &content) != nil {
		return Annotations{}
	}
	text := func(key string) string {
		value, _ := content.Annotations[key].(string)
		return strings.TrimSpace(value)
	}
	found := Annotations{Package: text(PackageAnnotation), DefaultChannel: text(defaultChannelAnnotation)}
	for name := range strings.SplitSeq(text(channelsAnnotation), ",") {
		if name = strings.TrimSpace(name); name != "" {
			found.Channels = append(found.Channels, name)
		}
	}
	return found
}
