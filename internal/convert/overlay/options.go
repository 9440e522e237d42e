// SPDX-License-Identifier: Apache-2.0

package overlay

// Options say how a bundle is adapted; the zero value leaves it as it is.
type Options struct {
	// Processors change the objects one after the other.
	Processors []Processor
}

// Processor changes objects: one of its fields is set.
type Processor struct {
	// Patch changes the objects that it selects, or names.
	Patch *Patch
	// Names are put around the names of objects.
	Names *Names
	// Images change images by their name.
	Images []Image
	// ImageRewrites move images.
	ImageRewrites []Rewrite
	// Variables are replaced.
	Variables *Variables
	// Metadata is put on every object.
	Metadata *Metadata
}

// Names are put around the names of objects.
type Names struct{ Prefix, Suffix string }

// Metadata is put on every object.
type Metadata struct{ Labels, Annotations map[string]string }

// Patch changes the objects that Target selects.
type Patch struct {
	// Text is a strategic merge patch or a JSON 6902 patch, in YAML or JSON.
	Text string
	// Target is nil where a strategic merge patch names its object itself.
	Target *Selector
}

// Selector selects objects; what is empty selects all. Group, Version, Kind, Namespace and Name are regular expressions for
// the whole of it.
type Selector struct {
	Group, Version, Kind, Namespace, Name string
	// LabelSelector and AnnotationSelector are in kubectl's notation.
	LabelSelector, AnnotationSelector string
}

// Image changes the image of one name.
type Image struct {
	Name, NewName, NewTag, Digest string
}

// Variables gives values to variables.
type Variables struct {
	// Given are written in the options, and win over Read, which come from elsewhere and may be secret.
	Given, Read map[string]string
}

// Rewrite moves images with a registry and repository that begin with From.
type Rewrite struct {
	From, To string
}

// Changes tells that there is something to do.
func (o Options) Changes() bool { return len(o.Processors) > 0 }
