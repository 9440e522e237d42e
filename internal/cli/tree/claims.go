// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/cli/kit"
)

// claims reads what the health of PersistentVolumeClaims depends on, with the permissions of the user.
type claims struct{ *kit.Explorer }

// Get implements health.ClaimReader.
func (c claims) Get(ctx context.Context, ref tenant.Ref) (*unstructured.Unstructured, error) {
	return c.Bodies.Resource(ref.Resource).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
}

// Events implements health.ClaimReader.
func (c claims) Events(ctx context.Context, namespace, uid string, limit int) ([]unstructured.Unstructured, error) {
	list, err := c.Bodies.Resource(schema.GroupVersionResource{Version: "v1", Resource: "events"}).Namespace(namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("involvedObject.uid", uid).String(), Limit: int64(limit),
	})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}
