#!/bin/sh
# effects.sh BUILD: what libraries do besides computing, called from C (effects.c): debug_print, checks, handlers of ffi_call.
. "$(dirname "$0")/try.sh"
cd "$work" || exit 1
cat >prints.jaxpr <<'X'
{ lambda ; a:f32[3] b:i32[]. let
    debug_print[fmt=a={} b={x:+04d} has_placeholders=True in_tree=PyTreeDef(((*,), {'x': *}))] a b
    c:i32[] = scan[
      jaxpr={ lambda ; d:i32[] e:f32[]. let
          f:i32[] = add d 1
          debug_print[fmt={:.1f}/{!r} has_placeholders=True in_tree=PyTreeDef(((*, *), {}))] e d
        in (f,) }
      length=3
      num_carry=1
      num_consts=0
      reverse=True
      unroll=1
    ] b a
  in (c,) }
X
cat >nans.jaxpr <<'X'
{ lambda ; a:f32[3] b:i32[]. let
    c:f32[3] d:f32[3] = scan[
      jaxpr={ lambda ; e:f32[3] f:f32[]. let
          g:f32[3] = sub e 1.0:f32[]
          h:f32[3] = cond[
            branches=(
              { lambda ; i:f32[3]. let in (i,) }
              { lambda ; j:f32[3]. let k:f32[3] = jit[name=f jaxpr={ lambda ; l:f32[3]. let m:f32[3] = log l in (m,) }] j in (k,) }
            )
          ] b g
          n:f32[] = reduce_sum[axes=(0,)] h
        in (g, n) }
      length=3
      num_carry=1
      num_consts=0
      reverse=False
      unroll=1
    ] a a
    o:f32[3] = sqrt c
  in (o, d) }
X
sed -i 's/lambda ; e:f32\[3\] f/lambda ; b:i32[] e:f32[3] f/; s/num_consts=0/num_consts=1/; s/\] a a/] b a a/' nans.jaxpr
cat >literals.jaxpr <<'X'
{ lambda ; a:f32[2] b:c64[2]. let
    k:f32[2,2] = broadcast_in_dim[broadcast_dimensions=() shape=(2, 2)] nan:f32[]
    c:f64[] = convert_element_type[new_dtype=float64 weak_type=False] nan:f32[]
    d:f32[] = convert_element_type[new_dtype=float32 weak_type=False] c
    e:f32[2] = broadcast_in_dim[broadcast_dimensions=() shape=(2,)] d
    f:c64[] = convert_element_type[new_dtype=complex64 weak_type=False] (1+nanj):c64[]
    g:c64[2] = broadcast_in_dim[broadcast_dimensions=() shape=(2,)] f
    h:f32[4] = pad[padding_config=((1, 1, 0),)] a nan:f32[]
    i:f32[2] = slice[limit_indices=(3,) start_indices=(1,) strides=None] h
    j:f32[2] = scan[
      jaxpr={ lambda ; l:f32[] m:f32[2] n:f32[2]. let
          o:f32[2] = broadcast_in_dim[broadcast_dimensions=() shape=(2,)] l
          p:bool[2] = lt m 0.0:f32[]
          q:f32[2] = select_n p m o
          r:f32[2] = rev[dimensions=(0,)] n
          t:f32[2] = select_n p q r
        in (t,) }
      length=2
      num_carry=1
      num_consts=1
      reverse=False
      unroll=1
    ] nan:f32[] i k
    u:bool[2] = lt a 0.0:f32[]
    v:f32[2] = select_n u a e
    w:bool[2] = eq b (0+0j):c64[]
    x:c64[2] = select_n w b g
  in (v, x) }
X
cat >devices.jaxpr <<'X'
{ lambda ; a:f32[8]. let
    b:f32[8] = shard_map[
      in_specs=(P('x',),)
      jaxpr={ lambda ; c:f32[2]. let d:f32[2] = psum[axes=('x',)] c; e:f32[2] = log c; f:f32[2] = add d e in (f,) }
      mesh=Mesh('x': 4, axis_types=(Auto,))
      out_specs=(P('x',),)
    ] a
  in (b,) }
X
cat >bounds.jaxpr <<'X'
{ lambda ; a:f32[3] b:i32[]. let
    c:f32[1] = dynamic_slice[slice_sizes=(1,)] a b
    d:f32[3] = dynamic_update_slice a c 0
  in (d,) }
X
cat >checked.jaxpr <<'X'
{ lambda ; a:bool[3]. let check[debug=False] a 1:i32[]; check[debug=True] a 1:i32[] in () }
X
cat >asserted.jaxpr <<'X'
{ lambda ; a:f32[b,c]. let
    b:i64[] = dimension_size[dimension=0] a
    d:bool[] = gt b 2:i64[]
    shape_assertion[
      error_message=Expected args[0].shape = (b, c) with 'b' > 2, not {0}
    ] d b
    shape_assertion[error_message=at most args[0] ] True:bool[] 3:i64[]
    e:f32[b,c] = neg a
  in (e, b) }
X
cat >calls.jaxpr <<'X'
{ lambda ; a:f32[2,2] b:i32[]. let
    c:f32[2,2] = ffi_call[
      attributes=(('by', np.float32(0.5)), ('d', FrozenDict({'z': 'b', 'a': np.int8(-2)})), ('n', 3), ('t', HashableArray(array([1., 2.]))))
      custom_call_api_version=4
      has_side_effect=False
      input_layouts=((0, 1),)
      input_output_aliases=((0, 0),)
      output_layouts=((1, 0),)
      result_avals=(ShapedArray(float32[2,2]),)
      target_name=scaled
    ] a
    d:i32[] = ffi_call[
      attributes=()
      custom_call_api_version=4
      has_side_effect=True
      target_name=counted
    ] b
    e:i32[] = ffi_call[
      attributes=()
      custom_call_api_version=4
      has_side_effect=True
      target_name=counted
    ] b
  in (c, d, e) }
X
{
    echo '{ lambda ; a:f32[2] b:f32[2]. let'
    for way in sequential broadcast_all expand_dims legacy_vectorized; do
        echo "$way:f32[2] = ffi_call[attributes=() custom_call_api_version=4 has_side_effect=False input_layouts=((0,), None)"
        echo "output_layouts=(None,) result_avals=(ShapedArray(float32[2]),) target_name=joined vmap_method=$way] a b"
    done
    echo 'in (sequential, broadcast_all, expand_dims, legacy_vectorized) }'
} >batched.jaxpr
cat >each.jaxpr <<'X'
{ lambda ; a:f32[] b:bool[]. let
    debug_print[fmt=a={} has_placeholders=True in_tree=PyTreeDef(((*,), {}))] a
    debug_print[fmt=b={} has_placeholders=True in_tree=PyTreeDef(((*,), {}))] b
    check[debug=False] b 1:i32[]
    c:f32[] = neg a
  in (c,) }
X
cat >sizes.jaxpr <<'X'
{ lambda ; a:bool[] b:i64[]. let shape_assertion[error_message=it is {0}] a b; c:bool[] = not a in (c,) }
X
sed 's/scaled/missing/' calls.jaxpr >missing.jaxpr
cc -std=c17 -Wall -shared -fPIC -DHANDLERS -I"$root" "$root/tests/effects.c" -o libhandlers.so || stop "handlers do not compile"
compile() { jaxcc "$@" || stop "jaxcc $*"; }
compile prints.jaxpr
compile nans.jaxpr --debug-nans
compile literals.jaxpr --debug-nans
compile devices.jaxpr --debug-nans
compile bounds.jaxpr --check-bounds
compile checked.jaxpr
compile asserted.jaxpr
compile calls.jaxpr --ffi=scaled="$work/libhandlers.so:scaled" --ffi counted="$work/libhandlers.so:counted"
compile batched.jaxpr --vmap=0 --entry 'batched_a:--vmap=0,_' --entry 'batched_b:--vmap=_,0' --ffi=joined="$work/libhandlers.so:joined"
compile each.jaxpr --vmap=0 --entry 'each_a:--vmap=0,_' --entry 'each_b:--vmap=_,0'
compile sizes.jaxpr --vmap=0 --entry 'sizes_a:--vmap=0,_' --entry 'sizes_b:--vmap=_,0'
compile missing.jaxpr --ffi=missing="$work/libhandlers.so:no_such" --ffi counted="$work/libhandlers.so:counted"
jaxcc calls.jaxpr 2>&1 | grep -q "calls.jaxpr:2:18: error: ffi_call: no library is given for 'scaled'" || stop "an unbound ffi_call compiles"
cc -std=c17 -Wall -I. -I"$root" "$root/tests/effects.c" ./*.so -Wl,-rpath,"$work" -o effects || stop "effects.c does not compile"
./effects 2>printed
tail -n 3 printed | grep -q '^1.0/Array(7, dtype=int32)$' || { cat printed; stop "debug_print does not write to standard error"; }
