// SPDX-License-Identifier: Apache-2.0

package overlay

// Options say how a bundle is adapted; the zero value leaves it as it is.
type Options struct {
	// Patches are applied one after the other, to the objects as the bundle names them.
	Patches []Patch
	// NamePrefix and NameSuffix are put around the names of objects.
	NamePrefix, NameSuffix string
	// Images change images by their name.
	Images []Image
	// Substitution replaces variables; nothing is replaced where it is nil.
	Substitution *Substitution
	// CommonLabels and CommonAnnotations are put on every object.
	CommonLabels, CommonAnnotations map[string]string
	// ImageRewrites move images, last of all.
	ImageRewrites []Rewrite
}

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

// Substitution gives values to variables.
type Substitution struct {
	// Given are written in the options, and win over Read, which come from elsewhere and may be secret.
	Given, Read map[string]string
}

// Rewrite moves images with a registry and repository that begin with From.
type Rewrite struct {
	From, To string
}

// Changes tells that there is something to do.
func (o Options) Changes() bool {
	return len(o.Patches) > 0 || o.NamePrefix != "" || o.NameSuffix != "" || len(o.Images) > 0 || o.Substitution != nil ||
		len(o.CommonLabels) > 0 || len(o.CommonAnnotations) > 0 || len(o.ImageRewrites) > 0
}
