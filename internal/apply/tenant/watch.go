// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// WatchMetadata streams changes of a collection's metadata until the context ends,
// or for as long as the options say. An answer, and so a stream, is read up to the
// pool's limit: the caller has to start again where a stream ended.
func (c *Client) WatchMetadata(ctx context.Context, ref Ref, options metav1.ListOptions) (watch.Interface, error) {
	if err := ref.collection(); err != nil {
		return nil, err
	}
	return c.metadata.Resource(ref.Resource).Namespace(ref.Namespace).Watch(ctx, options)
}
