// SPDX-License-Identifier: Apache-2.0

package source

import (
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

// seen maps objects that were read, by kind and name, to their versions; "" for a
// missing one.
type seen map[seenObject]string

type seenObject struct{ kind, name string }

// secrets reads the objects that one source references, by name and in its namespace
// only, and notes their versions. Each object is read once.
type secrets struct {
	reader    client.Reader
	namespace string
	seen      seen
	read      map[string]*corev1.Secret
	bytes     int // total size of the Secrets
	// patterns bounds the regular expressions of all parts of the source together.
	patterns *pattern.Budget
}

// mostSecretBytes bounds the total size of the Secrets of one source. They stay in
// memory for a reconcile, and a source can reference more than a hundred of up to 1 MiB
// each.
const mostSecretBytes = 4 << 20

func newSecrets(reader client.Reader, namespace string) *secrets {
	return &secrets{reader: reader, namespace: namespace, seen: seen{}, read: map[string]*corev1.Secret{}, patterns: pattern.NewBudget()}
}

// get returns a Secret. A missing one is an error.
func (s *secrets) get(ctx context.Context, name string) (*corev1.Secret, error) {
	secret, err := s.find(ctx, name)
	if err == nil && secret == nil {
		err = fetch.Errorf(fetch.NotFound, "secret %s/%s does not exist: create it, or correct the name in the source", s.namespace, name)
	}
	return secret, err
}

// find returns a Secret; nil if it does not exist.
func (s *secrets) find(ctx context.Context, name string) (*corev1.Secret, error) {
	if secret, known := s.read[name]; known {
		return secret, nil
	}
	secret := &corev1.Secret{}
	found, err := s.load(ctx, "Secret", name, secret)
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

func (s *secrets) count(secret *corev1.Secret) error {
	for _, value := range secret.Data {
		s.bytes += len(value)
	}
	if s.bytes > mostSecretBytes {
		return fetch.Errorf(fetch.LimitExceeded, "secret %s/%s: the Secrets of one source may hold %d MiB in all: name fewer, or smaller ones",
			s.namespace, secret.Name, mostSecretBytes>>20)
	}
	return nil
}

// load reads an object, and tells whether it exists.
func (s *secrets) load(ctx context.Context, kind, name string, into client.Object) (bool, error) {
	err := s.reader.Get(ctx, types.NamespacedName{Namespace: s.namespace, Name: name}, into)
	switch {
	case apierrors.IsNotFound(err):
		s.seen[seenObject{kind, name}] = ""
		return false, nil
	case err != nil:
		return false, fetch.Errorf(fetch.Unreachable, "reading %s %s/%s: %w", kind, s.namespace, name, err)
	}
	s.seen[seenObject{kind, name}] = version(into)
	return true, nil
}

// names are the Secrets that were read, with their namespace, sorted.
func (s *secrets) names() []string {
	var names []string
	for name := range s.read {
		names = append(names, s.namespace+"/"+name)
	}
	slices.Sort(names)
	return names
}

// pullSecrets returns the image pull Secrets of a ServiceAccount. Missing ones are
// skipped, as for a Pod.
func (s *secrets) pullSecrets(ctx context.Context, account string) ([]*corev1.Secret, error) {
	var object corev1.ServiceAccount
	found, err := s.load(ctx, "ServiceAccount", account, &object)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fetch.Errorf(fetch.NotFound,
			"serviceaccount %s/%s does not exist: create it, or correct spec.serviceAccountName", s.namespace, account)
	}
	var all []*corev1.Secret
	for _, ref := range object.ImagePullSecrets[:min(len(object.ImagePullSecrets), mostPullSecrets)] {
		secret, err := s.find(ctx, ref.Name)
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

// changed tells whether one of the objects has changed since, by their metadata. An
// unreadable one counts as unchanged.
func (s seen) changed(ctx context.Context, reader client.Reader, namespace string) bool {
	for object, before := range s {
		meta := &metav1.PartialObjectMetadata{}
		meta.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: object.kind})
		err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: object.name}, meta)
		switch {
		case apierrors.IsNotFound(err) && before != "", err == nil && version(meta) != before:
			return true
		}
	}
	return false
}

// clone returns a copy.
func (s seen) clone() seen { return maps.Clone(s) }
