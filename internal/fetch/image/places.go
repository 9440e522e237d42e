// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// place is a repository from which an image may be fetched.
type place struct {
	*registry
	via  string // the mirror; "" for the registry in the image's name
	tags bool   // it is asked what tags stand for
}

// newPlaces returns the places of an image in the order in which they are tried.
func newPlaces(named name.Repository, o Options) ([]place, error) {
	var places []place
	for _, m := range o.Mirrors {
		repository, err := parseRepository(m.Repository, m.Insecure)
		if err != nil {
			return nil, fetch.Describe(err, "mirror of %s", fetch.Quote(o.Ref))
		}
		if m.Client == nil {
			return nil, errors.New("a mirror needs an HTTP client")
		}
		own := Options{Client: m.Client, Insecure: m.Insecure, Keychain: m.Keychain}
		places = append(places, place{newRegistry(repository, own), m.Repository, m.Tags})
	}
	if !o.MirrorsOnly {
		places = append(places, place{newRegistry(named, o), "", true})
	}
	if len(places) == 0 {
		return nil, fetch.Errorf(fetch.Refused, "image %s: its registry is not contacted, and it has no mirrors", fetch.Quote(o.Ref))
	}
	return places, nil
}

// placesForTags are those that say what a tag stands for.
func (f *Fetcher) placesForTags() []place {
	return slices.DeleteFunc(slices.Clone(f.places), func(p place) bool { return !p.tags })
}

// inTurn does something at one place after the other until that succeeds. The error names each place that failed; its reason
// is that of the last one. What is decided once is not tried again.
func (f *Fetcher) inTurn(ctx context.Context, places []place, do func(place) error) error {
	var before []string
	for i, p := range places {
		err := do(p)
		var decided decidedError
		switch last := i == len(places)-1 || errors.As(err, &decided) || ctx.Err() != nil; {
		case err == nil:
			return nil
		case !last:
			before = append(before, p.explain(err, "%s", p.label()).Error())
		case len(before) == 0:
			return p.explain(err, "image %s", p.within(f.text))
		default:
			return fetch.Describe(p.explain(err, "%s", p.label()), "image %s: %s", f.text, strings.Join(before, "; "))
		}
	}
	return nil
}

// label says which place it is.
func (p place) label() string {
	if p.via != "" {
		return "mirror " + p.via
	}
	return "registry " + p.host()
}

// within names an image, and the mirror if it is the only place.
func (p place) within(text string) string {
	if p.via == "" {
		return text
	}
	return fmt.Sprintf("%s at mirror %s", text, p.via)
}

// signaturePlaces are the places where signatures of an image at p are looked for: there first, then at the others.
func (f *Fetcher) signaturePlaces(p place) []place {
	places := []place{p}
	for _, other := range f.places {
		if other.registry != p.registry {
			places = append(places, other)
		}
	}
	return places
}
