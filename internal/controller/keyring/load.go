// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SecretName is the Secret with the keys, in the namespace of the controllers. The manifests create it without an entry.
const SecretName = "bundle-deployment-controller-keys"

// attempts bounds how often the Secret is read again because another replica wrote it.
const attempts = 5

// nameLayout names an entry after the time at which it was made, so that the newest is the last one.
const nameLayout = "20060102T150405Z"

// Load reads the keys of the installation. The first replica that finds the Secret without an entry adds one; the API
// server refuses the others, which read again. A missing or unreadable Secret is an error: with a key of its own a
// replica would not trust the approvals of others.
func Load(ctx context.Context, reader client.Reader, writer client.Writer, namespace string, now time.Time) (Ring, error) {
	for range attempts {
		var secret corev1.Secret
		err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: SecretName}, &secret)
		if apierrors.IsNotFound(err) {
			return Ring{}, fmt.Errorf("secret %s/%s, which holds the keys of approvals and hashes, does not exist: restore it from a backup, "+
				"or apply config/rbac/keyring.yaml, after which everything that needs an approval has to be approved again", namespace, SecretName)
		}
		if err != nil {
			return Ring{}, fmt.Errorf("reading secret %s/%s with the keys of approvals and hashes: %w", namespace, SecretName, err)
		}
		if len(secret.Data) > 0 {
			ring, err := New(secret.Data)
			if err != nil {
				return Ring{}, fmt.Errorf("secret %s/%s with the keys of approvals and hashes cannot be used: %w", namespace, SecretName, err)
			}
			return ring, nil
		}
		if err := addKey(ctx, writer, &secret, now); err != nil && !apierrors.IsConflict(err) {
			return Ring{}, fmt.Errorf("adding the first key to secret %s/%s: %w", namespace, SecretName, err)
		}
	}
	return Ring{}, fmt.Errorf("secret %s/%s keeps changing and has no key: find out which client empties it", namespace, SecretName)
}

// addKey adds a key to a Secret, unless that was written since it was read.
func addKey(ctx context.Context, writer client.Writer, secret *corev1.Secret, now time.Time) error {
	value := make([]byte, keyBytes)
	if _, err := rand.Read(value); err != nil {
		return err
	}
	secret.Data = map[string][]byte{now.UTC().Format(nameLayout): value}
	return writer.Update(ctx, secret)
}
