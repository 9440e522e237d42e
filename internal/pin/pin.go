// SPDX-License-Identifier: Apache-2.0

// Package pin pins sources by the digests that they were resolved to.
package pin

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/plural"
	"github.com/satchel-dev/satchel/internal/visible"
)

// Error says why a source cannot be pinned to a revision.
type Error struct {
	what string
	todo string
}

// Error implements error.
func (e *Error) Error() string { return e.what + "; " + e.todo }

// Sources returns the sources pinned to the content of the revision. Credentials, certificates and trust settings are not
// changed.
func Sources(present []v1alpha1.Source, origins, current []v1alpha1.RevisionOrigin) ([]v1alpha1.Source, error) {
	if len(origins) == 0 {
		return nil, &Error{"where that revision came from was not recorded", "commit the reference that it had then"}
	}
	byDestination := map[string]v1alpha1.RevisionOrigin{}
	for _, o := range origins {
		byDestination[o.Destination] = o
	}
	if len(byDestination) != len(present) {
		return nil, &Error{fmt.Sprintf("that revision was composed of %s, and now there are %d", plural.Of(len(origins), "source"), len(present)),
			"commit the sources that it had then"}
	}
	back := make([]v1alpha1.Source, 0, len(present))
	for _, part := range present {
		origin, found := byDestination[part.Destination]
		if !found {
			return nil, &Error{fmt.Sprintf("that revision had nothing in the folder %q", part.Destination), "commit the sources that it had then"}
		}
		one, err := pinPart(*part.DeepCopy(), origin, current)
		if err != nil {
			return nil, err
		}
		back = append(back, one)
	}
	return back, nil
}

func pinPart(part v1alpha1.Source, origin v1alpha1.RevisionOrigin, current []v1alpha1.RevisionOrigin) (v1alpha1.Source, error) {
	switch {
	case part.Image != nil && origin.Image != "":
		part.Image.Reference, part.Image.Version = imageAt(origin), ""
	case part.Git != nil && origin.Git != "":
		return part, pinGit(part.Git, origin)
	case part.HTTP != nil && origin.URL != "":
		part.HTTP.URL, part.HTTP.Digest = origin.URL, origin.Digest
	case part.Helm != nil && origin.Helm != "":
		part.Helm.URL, part.Helm.Chart = origin.Helm, origin.Chart
		part.Helm.Version, part.Helm.Digest = origin.Reference, origin.Digest
	case part.ConfigMap != nil && origin.ConfigMap != "":
		return part, sameConfigMap(part, origin, current)
	case part.Upload != nil && isUpload(origin):
		part.Upload.Digest = origin.Digest
	default:
		return part, &Error{"that revision came from a source of another kind: " + originText(origin), "commit the source that it had then"}
	}
	return part, nil
}

// isUpload tells whether a revision was uploaded: it has a digest and no origin.
func isUpload(o v1alpha1.RevisionOrigin) bool {
	return o.Image == "" && o.Git == "" && o.URL == "" && o.Helm == "" && o.ConfigMap == "" && o.Digest != ""
}

// imageAt is the image by its digest; the tag that it had is only kept for people.
func imageAt(o v1alpha1.RevisionOrigin) string {
	if o.Reference == "" || strings.Contains(o.Reference, ":") {
		return o.Image + "@" + o.Digest
	}
	return o.Image + ":" + o.Reference + "@" + o.Digest
}

func pinGit(git *v1alpha1.GitSource, origin v1alpha1.RevisionOrigin) error {
	commit, isSHA1 := strings.CutPrefix(origin.Digest, "sha1:")
	if !isSHA1 {
		return &Error{"its commit " + visible.Line(origin.Digest) + " cannot be named in spec.ref.commit", "point a branch or tag at it, and commit that as ref"}
	}
	if git.Verify != nil && git.Verify.Mode != "" && git.Verify.Mode != "HEAD" {
		return &Error{"the signature of a tag is required (verify.mode " + git.Verify.Mode + "), and a commit has none",
			"commit ref: {tag: " + cmp.Or(visible.Line(origin.Reference), "-") + "}, if that still points at " + commit}
	}
	git.URL = origin.Git
	git.Path = origin.Path
	git.Ref = &v1alpha1.GitRef{Commit: commit}
	return nil
}

// sameConfigMap accepts a ConfigMap that still has the content of the revision.
func sameConfigMap(part v1alpha1.Source, origin v1alpha1.RevisionOrigin, current []v1alpha1.RevisionOrigin) error {
	for _, now := range current {
		if now.Destination == part.Destination && now.Digest == origin.Digest && part.ConfigMap.Name == origin.ConfigMap {
			return nil
		}
	}
	return &Error{"the content that the ConfigMap " + origin.ConfigMap + " had then is not stored", "restore its former content from Git"}
}

// originText is an origin in words.
func originText(o v1alpha1.RevisionOrigin) string {
	at := " at " + cmp.Or(o.Digest, "-")
	switch {
	case o.Image != "":
		return "image " + visible.Line(imageAt(o))
	case o.Git != "":
		return "git " + visible.Line(o.Git+at)
	case o.URL != "":
		return "archive " + visible.Line(o.URL+at)
	case o.Helm != "":
		return "chart " + visible.Line(o.Chart+" "+o.Reference+" of "+o.Helm+at)
	case isUpload(o):
		return "upload" + visible.Line(at)
	}
	return "ConfigMap " + visible.Line(o.ConfigMap+at)
}
