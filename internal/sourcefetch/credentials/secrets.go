// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"cmp"
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/pattern"
)

// Seen maps objects that were read, by kind and name, to their versions; "" for a
// missing one.
type Seen map[SeenObject]string

// SeenObject names an object.
type SeenObject struct {
	Kind, Name string
	// Namespace is "" for that of the source.
	Namespace string
}

// Secrets reads the objects that one source references, by name and in its namespace
// only, and notes their versions. Each object is read once.
type Secrets struct {
	reader    client.Reader
	Namespace string
	Seen      Seen
	read      map[string]*corev1.Secret
	bytes     *int // total size of the Secrets
	// elsewhere is the namespace in the keys of Seen; "" for that of the source.
	elsewhere string
	// patterns bounds the regular expressions of all parts of the source together.
	Patterns *pattern.Budget
}

// mostSecretBytes bounds the total size of the Secrets of one source. They stay in
// memory for a reconcile, and a source can reference more than a hundred of up to 1 MiB
// each.
const mostSecretBytes = 4 << 20

// NewSecrets reads Secrets of a namespace, none of them yet.
func NewSecrets(reader client.Reader, namespace string) *Secrets {
	return &Secrets{reader: reader, Namespace: namespace, Seen: Seen{}, read: map[string]*corev1.Secret{}, bytes: new(int), Patterns: pattern.NewBudget()}
}

// In returns a reader of the Secrets of another namespace, that of shared policies. What it reads counts and is noted
// with what this one reads; regular expressions have a budget of their own.
func (s *Secrets) In(namespace string) *Secrets {
	if namespace == s.Namespace {
		return s
	}
	return &Secrets{
		reader: s.reader, Namespace: namespace, Seen: s.Seen, read: map[string]*corev1.Secret{}, bytes: s.bytes,
		elsewhere: namespace, Patterns: pattern.NewBudget(),
	}
}

// Version identifies the state in which a Secret was read; "" if it was not, or does not exist.
func (s *Secrets) Version(name string) string {
	return s.Seen[s.seenSecret(name)]
}

// CopySeen notes the version of a Secret in another set, if it was read.
func (s *Secrets) CopySeen(name string, to Seen) {
	object := s.seenSecret(name)
	if version, known := s.Seen[object]; known {
		to[object] = version
	}
}

func (s *Secrets) seenSecret(name string) SeenObject { return s.seen("Secret", name) }

func (s *Secrets) seen(kind, name string) SeenObject {
	return SeenObject{Kind: kind, Name: name, Namespace: s.elsewhere}
}

// Get returns a Secret. A missing one is an error.
func (s *Secrets) Get(ctx context.Context, name string) (*corev1.Secret, error) {
	secret, err := s.Find(ctx, name)
	if err == nil && secret == nil {
		err = fetch.Errorf(fetch.NotFound, "secret %s/%s does not exist: create it, or correct the name in the source", s.Namespace, name)
	}
	return secret, err
}

// Find returns a Secret; nil if it does not exist.
func (s *Secrets) Find(ctx context.Context, name string) (*corev1.Secret, error) {
	if secret, known := s.read[name]; known {
		return secret, nil
	}
	secret := &corev1.Secret{}
	found, err := s.Load(ctx, "Secret", name, secret)
	if err != nil {
		return nil, err
	}
	if !found {
		secret = nil
	} else if err := s.count(secret); err != nil {
		return nil, err
	}
	s.read[name] = secret
	return secret, nil
}

func (s *Secrets) count(secret *corev1.Secret) error {
	for _, value := range secret.Data {
		*s.bytes += len(value)
	}
	if *s.bytes > mostSecretBytes {
		return fetch.Errorf(fetch.LimitExceeded, "secret %s/%s: the Secrets of one source may hold %d MiB in all: name fewer, or smaller ones",
			s.Namespace, secret.Name, mostSecretBytes>>20)
	}
	return nil
}

// Load reads an object, and tells whether it exists.
func (s *Secrets) Load(ctx context.Context, kind, name string, into client.Object) (bool, error) {
	err := s.reader.Get(ctx, types.NamespacedName{Namespace: s.Namespace, Name: name}, into)
	switch {
	case apierrors.IsNotFound(err):
		s.Seen[s.seen(kind, name)] = ""
		return false, nil
	case err != nil:
		return false, fetch.Errorf(fetch.Unreachable, "reading %s %s/%s: %w", kind, s.Namespace, name, err)
	}
	s.Seen[s.seen(kind, name)] = version(into)
	return true, nil
}

// Names are the Secrets that were read, with their namespace, sorted.
func (s *Secrets) Names() []string {
	var names []string
	for name := range s.read {
		names = append(names, s.Namespace+"/"+name)
	}
	slices.Sort(names)
	return names
}

// PullSecrets returns the image pull Secrets of a ServiceAccount. Missing ones are
// skipped, as for a Pod.
func (s *Secrets) PullSecrets(ctx context.Context, account string) ([]*corev1.Secret, error) {
	var object corev1.ServiceAccount
	found, err := s.Load(ctx, "ServiceAccount", account, &object)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fetch.Errorf(fetch.NotFound,
			"serviceaccount %s/%s does not exist: create it, or correct spec.serviceAccountName", s.Namespace, account)
	}
	var all []*corev1.Secret
	for _, ref := range object.ImagePullSecrets[:min(len(object.ImagePullSecrets), mostPullSecrets)] {
		secret, err := s.Find(ctx, ref.Name)
		if err != nil {
			return nil, err
		}
		if secret != nil {
			all = append(all, secret)
		}
	}
	return all, nil
}

// mostPullSecrets bounds the Secrets that are read for one ServiceAccount.
const mostPullSecrets = 20

// version identifies one state of an object.
func version(object metav1.Object) string {
	return string(object.GetUID()) + "/" + object.GetResourceVersion()
}

// Changed tells whether one of the objects has changed since, by their metadata; namespace is
// that of the source. An unreadable one counts as unchanged.
func (s Seen) Changed(ctx context.Context, reader client.Reader, namespace string) bool {
	for object, before := range s {
		meta := &metav1.PartialObjectMetadata{}
		meta.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: object.Kind})
		err := reader.Get(ctx, types.NamespacedName{Namespace: cmp.Or(object.Namespace, namespace), Name: object.Name}, meta)
		switch {
		case apierrors.IsNotFound(err) && before != "", err == nil && version(meta) != before:
			return true
		}
	}
	return false
}

// Clone returns a copy.
func (s Seen) Clone() Seen { return maps.Clone(s) }
