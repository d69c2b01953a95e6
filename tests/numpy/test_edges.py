"""Values at the edges of NumPy's functions, held against NumPy: ends, signs, NaN and infinities, empty axes, descending bins, overflow; and what
NumPy refuses because no value would be right."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.settings import override
from tests.support.needs import of_numpy

VALUES = [
    "np.diff(a([1,2,3]),n=0)",
    "np.diff(a([1,2,3]),n=5)",
    "np.diff(a([True,False,True]))",
    "np.digitize(a([1.,2,3]),a([3.,2,1]))",
    "np.digitize(a([1.,2,3]),a([3.,2,1]),right=True)",
    "np.quantile(a([1.,2,np.nan]),0.5)",
    "np.median(a([np.inf,np.inf]))",
    "np.median(a([-np.inf,np.inf]))",
    "np.var(a([1.,2,3]),ddof=5)",
    "np.std(a([1.,2,3]),ddof=3)",
    "np.var(a([1.,2,3]),ddof=3)",
    "np.nanvar(a([1.,2,numpy.nan]),ddof=2)",
    "np.nanvar(a([1.,2,numpy.nan]),ddof=3)",
    "np.var(a([1.]),ddof=1)",
    "np.cov(a([1.]))",
    "np.cov(a([[1.,2],[3,4]]),ddof=3)",
    "np.unpackbits(a([2],dtype='u1'),count=-3)",
    "np.unpackbits(a([2],dtype='u1'),count=12)",
    "np.geomspace(-1,-1000,4)",
    "np.geomspace(1,1000,4,dtype=int)",
    "np.logspace(a(0),a(3),4,dtype=int)",
    "np.linspace(a(0),a(3),5,dtype=int)",
    "np.linspace(a(0.),a(-3.),5,dtype=int)",
    "np.linspace(0,-3,5,dtype=int)",
    "np.insert(a([[1,1],[2,2],[3,3]]),[1],[1,2,3],axis=1)",
    "np.insert(a([1,2,3]),[1],[7,8])",
    "np.insert(a([1,2,3]),slice(1,2),[7,8])",
    "np.insert(a([1,2,3]),[1,2],[7])",
    "np.insert(a([1,2,3]),[2,1],[7,8])",
    "np.insert(a([1,2,3]),[-1,0],[7,8])",
    "np.insert(a([1,2,3]),a([1]),[7,8])",
    "np.delete(a([1,2,3]),[True,False,True])",
    "np.delete(a([1,2,3]),[0,0])",
    "np.delete(a([1,2,3]),-1)",
    "np.delete(a([1,2,3]),[])",
    "np.piecewise(a(3),[True,False],[4,0])",
    "np.piecewise(a([1,2,3]),a([[True,False,True],[False,True,False]]),[4,0])",
    "np.piecewise(a([1.,2,3]),[True,False,True],[4,0])",
    "np.piecewise(a([1.,2,3]),a([True,False,True]),[4,0])",
    "np.interp(.5,[0,1],[-numpy.inf,10.])",
    "np.interp(.5,[-numpy.inf,numpy.inf],[10.,10])",
    "np.interp(.5,[-numpy.inf,1],[0,10.])",
    "np.interp(numpy.nan,[0,1],[0,10.])",
    "np.interp(.5,[0,numpy.nan,1],[0,5,10.])",
    "np.isclose(a([1.]),a([1.]),rtol=numpy.nan)",
    "np.isclose(a([numpy.inf]),a([numpy.inf]),rtol=numpy.inf)",
    "np.isclose(a([1.]),a([numpy.inf]),rtol=numpy.inf)",
    "np.isclose(a(2**62),a(2**62+5000),rtol=0,atol=100)",
    "np.allclose(a([1,2],dtype='u1'),a([2,1],dtype='u1'),atol=.5)",
    "np.isclose(a([200],dtype='u1'),a([210],dtype='u1'),rtol=0,atol=15)",
    "np.nan_to_num(a([numpy.nan,numpy.inf]),nan=numpy.inf,posinf=7.)",
    "np.nan_to_num(a([numpy.nan,numpy.inf]),posinf=-numpy.inf,neginf=5.)",
    "np.count_nonzero(a([1,0,2]))",
    "np.trim_zeros(a([0,0]))",
    "np.unwrap(a([0,4,8]),period=4)",
    "np.unwrap(a([0.,4,8]))",
    "np.trapezoid(a([1,2,3]),dx=2)",
    "np.trapezoid(a([1,2,3]),x=a([3,2,0]))",
    "np.trapezoid(a([True,True]))",
    "np.convolve(a([1,2,3]),a([0,1]),'same')",
    "np.convolve(a([0,1]),a([1,2,3]),'same')",
    "np.convolve(a([0,1,2,3]),a([1,2]),'same')",
    "np.convolve(a([1,2]),a([1,2,3,4]),'valid')",
    "np.correlate(a([1,2]),a([1,2,3,4]),'same')",
    "np.correlate(a([1,2j]),a([1,2,3j,4]),'full')",
    "np.around(a([0.5,1.5,2.5,-0.5,-1.5]))",
    "np.around(a([0.25,0.35,1.005,2.675]),1)",
    "np.around(a([15,25,35,-15]),-1)",
    "np.around(a([115,125],dtype='i1'),-1)",
    "np.around(a([1e300,2.5e-5]),3)",
    "np.floor_divide(a([5.,-5,5,-5]),a([3.,3,-3,-3]))",
    "np.divmod(a([5.,-5,numpy.inf,1]),a([-0.,0,3,numpy.inf]))",
    "np.divmod(a([-128,127],dtype='i1'),a([-1,0],dtype='i1'))",
    "np.fmod(a([-7,7]),a([3,-3]))",
    "np.remainder(a([-7.5,7.5,-0.]),a([3,-3,3]))",
    "np.left_shift(a([1,1,-1]),a([63,64,70]))",
    "np.right_shift(a([-1,-8,8]),a([63,64,-1]))",
    "np.power(a([0.,-0.,numpy.inf,-numpy.inf,-8.]),a([-1.,-3,-2,3,1/3]))",
    "np.float_power(a([-8.]),a([3]))",
    "np.gcd(a([-4,0,-2**63]),a([6,0,2]))",
    "np.lcm(a([-4,0,2**62]),a([6,0,3]))",
    "np.hypot(a([1e200,numpy.inf,numpy.nan]),a([1e200,numpy.nan,numpy.inf]))",
    "np.logaddexp(a([-numpy.inf,numpy.inf,1e308]),a([-numpy.inf,numpy.inf,1e308]))",
    "np.heaviside(a([-1,0.,numpy.nan,2]),.5)",
    "np.copysign(a([1,2.]),a([-0.,0]))",
    "np.nextafter(a([0.,1.]),a([1.,numpy.inf]))",
    "np.spacing(a([0.,1.,numpy.inf,-1]))",
    "np.ldexp(a([1.,2]),a([1100,-1100]))",
    "np.frexp(a([0.,numpy.inf,5e-324,-8]))",
    "np.modf(a([-0.5,numpy.inf,-numpy.inf,numpy.nan]))",
    "np.sign(a([numpy.nan,-0.,0.]))",
    "np.sinc(a([0.,1e-20,1,numpy.inf]))",
    "np.angle(a([-1+0j,-1-0j,0]))",
    "np.sort(a([numpy.nan,1,-numpy.inf,numpy.nan,0.,-0.]))",
    "np.argsort(a([numpy.nan,1,-numpy.inf,numpy.nan]))",
    "np.argmax(a([1,numpy.nan,3,numpy.nan]))",
    "np.argmin(a([1,numpy.nan,3,numpy.nan]))",
    "np.unique(a([numpy.nan,1,numpy.nan]))",
    "np.unique(a([numpy.nan,1,numpy.nan]),return_counts=True)",
    "np.searchsorted(a([1.,2,numpy.nan]),a([numpy.nan,3]))",
    "np.searchsorted(a([1.,2,2,3]),a([2.]),side='right')",
    "np.partition(a([3,numpy.nan,1]),1)",
    "np.maximum(a([numpy.nan,1]),a([1,numpy.nan]))",
    "np.fmax(a([numpy.nan,1]),a([1,numpy.nan]))",
    "np.clip(a([1,numpy.nan,3]),2,numpy.nan)",
    "np.clip(a([1,5,3]),4,2)",
    "np.ptp(a([100,-100],dtype='i1'))",
    "np.mean(a([2**62,2**62,2**62]))",
    "np.mean(a([],dtype='f8'))",
    "np.prod(a([],dtype='i4'))",
    "np.cumsum(a([100,100],dtype='i1'))",
    "np.sum(a([100,100],dtype='i1'))",
    "np.nansum(a([numpy.nan]))",
    "np.nanmax(a([numpy.nan]))",
    "np.nanmedian(a([numpy.nan,numpy.nan]))",
    "np.nanprod(a([numpy.nan]))",
    "np.nancumprod(a([numpy.nan,2]))",
    "np.nanpercentile(a([numpy.nan,1,2]),50)",
    "np.vander(a([1,2,3]),4)",
    "np.roots(a([1.,-3,2]))",
    "np.poly(a([1.,2]))",
    "np.polyval(a([1,2,3]),a(2))",
    "np.tensordot(a([[1,2],[3,4]]),a([[1,2],[3,4]]),axes=0)",
    "np.tensordot(a([[1,2],[3,4]]),a([[1,2],[3,4]]),axes=([0,1],[1,0]))",
    "np.einsum('ii',a([[1,2],[3,4]]))",
    "np.einsum('ii->i',a([[1,2],[3,4]]))",
    "np.einsum('ij,kj->',a([[1,2],[3,4]]),a([[1,2]]))",
    "np.einsum('i...->...',a([[1,2],[3,4]]))",
    "np.einsum('...i,...i',a([[1,2],[3,4]]),a([5,6]))",
    "np.einsum('ij->',a([[1],[3]],dtype='i1'))",
    "np.cross(a([[1,2,3]]),a([[4,5,6],[7,8,9]]))",
    "np.kron(a([[1,2]]),a([1,2]))",
    "np.block([[a([1]),a([2])],[a([3,4])]])",
    "np.apply_along_axis(lambda r: r.sum(), 0, a([[1,2],[3,4]]))",
    "np.pad(a([1,2,3]),(2,1),'reflect')",
    "np.pad(a([1,2,3]),(2,3),'symmetric')",
    "np.pad(a([1,2,3]),(3,2),'wrap')",
    "np.tile(a([1,2]),(2,0))",
    "np.repeat(a([1,2]),[0,3])",
    "np.roll(a([[1,2],[3,4]]),(1,1),(0,0))",
    "np.take(a([1,2,3]),a([-4,5]),mode='wrap')",
    "np.choose(a([0,1,5]),[a([1,2,3]),a([4,5,6])],mode='wrap')",
    "np.packbits(a([1,0,1]))",
    "np.packbits(a([1,0,1]),bitorder='little')",
    "np.triu(a([[1,2],[3,4]]),k=5)",
    "np.trace(a([[1,2],[3,4]]),offset=3)",
    "np.diag(a([1,2]),k=-1)",
    "np.diagflat(a([[1,2]]),1)",
    "np.ediff1d(a([1,2,4]),to_begin=[9])",
    "np.setdiff1d(a([3,1,2,1]),a([2]))",
    "np.isin(a([numpy.nan,1]),a([numpy.nan]))",
    "np.isin(a([1,2],dtype='i8'),a([1.5,2.]))",
    "np.isin(a([2**53+1]),a([2.0**53]))",
    "np.bitwise_count(a([-1,-8,7]))",
    "np.invert(a([0,255],dtype='u1'))",
    "np.nonzero(a([0.,-0.,numpy.nan]))",
    "np.flatnonzero(a([[0,1],[2,0]]))",
    "np.cumulative_sum(a([1,2]),include_initial=True)",
    "np.vecdot(a([1j,2]),a([1,1j]))",
    "np.matvec(a([[1j,2]]),a([1,1j]))",
    "np.vecmat(a([1j,2]),a([[1],[1j]]))",
    "np.linalg.norm(a([1.,2]),ord=0)",
    "np.linalg.norm(a([1.,-2]),ord=-numpy.inf)",
    "np.linalg.matrix_power(a([[1.,1],[1,0]]),-2)",
    "np.linalg.det(a([[0.,0],[0,0]]))",
    "np.linalg.slogdet(a([[0.,0],[0,0]]))",
    "np.linalg.pinv(a([[0.,0],[0,0]]))",
    "np.linalg.matrix_rank(a([[0.,0],[0,0]]))",
    "np.fft.fftfreq(5,.1)",
    "np.fft.fftshift(a([1,2,3,4,5]))",
    "np.fft.hfft(a([1,2,3.]))",
    "np.convolve(a([1,2,3]),a([1,1]),mode='valid')",
    "np.expm1(a([1e-20,710]))",
    "np.log1p(a([-1.,1e-20]))",
    "np.exp2(a([1024.,-1075]))",
    "np.cbrt(a([-8.,numpy.inf]))",
    "np.arctan2(a([0.,-0.,0.,-0.]),a([-0.,-0.,0.,0.]))",
    "np.sin(a([1e22,1e300]))",
    "np.sqrt(a([-1+0j,-1-0j,complex(-numpy.inf,numpy.nan)]))",
    "np.log(a([0j,complex(-0.,0),-1-0j]))",
    "np.arcsin(a([2+0j,2-0j]))",
    "np.multiply(a([complex(numpy.inf,numpy.nan)]),a([1+1j]))",
    "np.divide(a([1+1j]),a([0j]))",
    "np.divide(a([1+1j]),a([complex(1e300,1e300)]))",
    "np.abs(a([complex(numpy.inf,numpy.nan),complex(3e200,4e200)]))",
    "np.abs(a([-128],dtype='i1'))",
    "np.negative(a([1],dtype='u1'))",
    "np.add(a([2**63],dtype='u8'),a([-1],dtype='i8'))",
    "np.greater(a([2**63],dtype='u8'),a([-1],dtype='i8'))",
    "np.equal(a([2**63+1],dtype='u8'),a([2**63-1],dtype='i8'))",
    "np.maximum(a([2**63+1],dtype='u8'),a([5],dtype='i8'))",
    "a([300.7,-1.9]).astype('i8')",
    "a([1e10]).astype('f2')",
    "a([2**63],dtype='u8').astype('f4')",
    "a([16777217]).astype('f4')",
    "a([True])+a([True])",
    "np.sum(a([True,True]))",
    "np.mean(a([True,False]))",
    "np.dot(a([True]),a([True]))",
    "np.matmul(a([200],dtype='u1'),a([200],dtype='u1'))",
    "np.arange(0.,1.,.1)",
    "np.arange(5,0,-2)",
    "np.arange(0,10,3.3)",
    "np.arange(0,-1)",
    "np.arange(3,dtype='f2')",
    "np.geomspace(a(-1.),a(-1000.),4)",
    "np.geomspace(a(1.),a(1000.),4,dtype=int)",
    "np.geomspace(a(1+1j),a(2-3j),5)",
    "np.histogram(a([1.,2,3]),bins=[1,1,3])[0]",
    "np.histogram(a([]),bins=3)[1]",
    "np.histogram(a([True,False,True]),bins=3)[0]",
    "np.histogram(a([1,2,1],dtype='u1'),bins=3,range=(-1,3))[0]",
    "np.digitize(a([1.,2,3]),a([]))",
    "np.digitize(a([[1.,2],[3,0]]),a([3.,2,2,1]))",
    "np.piecewise(a([[1,2],[3,4]]),[a([[True,False],[False,False]]),a([[False,False],[True,True]])],[4,0,7])",
    "np.interp(.5,[0,1],[numpy.inf,-numpy.inf])",
    "np.interp(a([0.,.5,1,numpy.nan,-1]),[0,1],[numpy.inf,numpy.inf])",
    "np.insert(a([[1,1],[2,2],[3,3]]),[1],[[1],[2],[3]],axis=1)",
    "np.insert(a([[1,1],[2,2],[3,3]]),1,[1,2,3],axis=1)",
    "np.insert(a([[1,1],[2,2],[3,3]]),1,[[1],[2],[3]],axis=1)",
    "np.insert(a([[1,1],[2,2],[3,3]]),[1,0],[[1],[2],[3]],axis=1)",
    "np.ix_([])[0].dtype",
    "np.histogram(a([1,2,3],dtype='f2'),bins=3,range=(0.0001,70000))",
    "np.histogram(a([1,2,3],dtype='f2'),bins=2,range=(2,2))",
    "np.histogram(a([1,2,3],dtype='f4'),bins=3,range=(numpy.float64(0.1),numpy.float64(2.3)))",
    "np.histogram(a([1,2,3],dtype='f4'),bins=3,range=(0,16777217))",
    *(
        f"np.histogram(numpy.random.default_rng(0).normal(size=200).astype({kind!r}),bins={rule!r},range={ends})"
        for rule in ("auto", "fd", "doane", "scott", "rice", "sturges", "sqrt", "stone")
        for kind, ends in (("f4", None), ("f8", (-1, 2.5)))
    ),
    "np.histogram(a([1,2,2,9]),bins='auto')",
    "np.histogram(a([]),bins='auto')",
    "np.histogram(a([1.],dtype='f2'),bins=1,range=a([1.0000001192092896,2],dtype='f4'))",
    "np.histogram(a([1.],dtype='f4'),bins=2,range=a([0,0.9999999999999998]))",
    "np.histogram_bin_edges(a([1,2,3],dtype='f2'),bins=4,range=(-1e5,1e5))",
    "np.histogramdd([a([0., 1, 1, 2]), a([0., 1, 0.9, 3]), a([5., 1, 5, 1])], bins=2)[0]",
    "np.histogramdd(([0., 1, 1, 2], [0., 1, 0.9, 3]), bins=(2, 3))[0]",
    "np.histogramdd(a([[0., 1], [1, 2], [2, 0.5]]), bins=2)[0]",
    "np.histogramdd([0., 1, 1, 2], bins=2)[0]",
    "np.flip(a([[1,2],[3,4]]),range(2))",
    "np.flip(a([[1,2],[3,4]]),numpy.array([1,0]))",
    "np.roll(a([[1,2],[3,4]]),1,range(2))",
    "np.roll(a([[1,2],[3,4]]),numpy.array([1,2]),numpy.array([0,1]))",
    "np.roll(a([[1,2,3],[3,4,5]]),(1,1),1)",
    "np.roll(a([[1,2,3],[3,4,5]]),(1,2),None)",
    "np.moveaxis(a([[1,2,3],[3,4,5]]),range(2),(1,0))",
    "np.atleast_1d(a(1),a([2]))",
    "np.atleast_2d(a([1,2]),a([[2]]))",
    "np.atleast_3d(a(1),a([2,3]),a([[1,2]]))",
    "np.atleast_3d()",
    "np.apply_along_axis(lambda v:(v.sum(),v.max()),0,a([[1,2],[3,4],[5,6]]))",
    "np.pad(a([[1,2],[3,4]]),{-1:(1,2)})",
    "np.pad(array=a([1,2]),pad_width=1)",
    "np.linspace(a([0,1]),a([1.,3]),3)",
    "np.linspace([0,1],[[1],[3]],4,axis=-1,dtype=int)",
    "np.linspace(a([0,1]),3,4,endpoint=False,axis=1)",
    "np.linspace([0,1],2,5,retstep=True)",
    "np.linspace([0,1j],2,5)",
    "np.linspace(0,1,3,axis=0)",
    "np.logspace([0,1],[1,3],3,axis=1)",
    "np.logspace(a([0,1.]),3,3,base=2.)",
    "np.geomspace([1,2],[8,16],4,axis=-1)",
    "np.geomspace(a([1,2.]),a([[8],[-16.]]),1,axis=-1)",
    "np.geomspace(a([1,2.]),a([[8],[16.]]),4,axis=-1)",
    "np.add.reduce(a([[1,2],[3,4]]),0,None,None,True)",
    "np.pad(a([[1,2],[3,4]]),{0:1,1:(0,3)},'edge')",
    "np.pad(a([[1,2],[3,4]]),numpy.array([[1,2],[0,1]]),'wrap')",
    "np.pad(a([[1,2],[3,4]]),((1,),(2,)),'mean',stat_length=(1,))",
    "np.linalg.norm(a([]),numpy.inf)",
    "np.linalg.norm(a([]),-1)",
    "np.linalg.norm(a([[],[]]),numpy.inf,axis=1)",
    "np.linalg.norm(a([[],[]]),2)",
    "np.linalg.norm(a([[],[]]),1)",
    "np.insert(a([1,2,3]),numpy.array([True,False,True,False]),9)",
    "np.insert(a([1,2,3]),numpy.array([False,False,False,True]),9)",
    "np.insert(a([[1,2],[3,4]]),numpy.array([True,True]),[[7],[8]],axis=0)",
    "np.interp([.5,2,-1],[0,1],[0,1j],left=1+1j)",
    "np.interp(a([.5,2,-1]),[0,1,2],a([0,1j,2]),period=3.)",
    "np.bincount([])",
    "np.bincount([],minlength=2)",
    "np.array(a([1,2]),ndmin=3)",
    "np.lexsort(a([[[1,1,0],[2,1,3]],[[1,1,0],[2,1,3]]]),axis=0)",
    "np.lexsort(a([[[1,1,0],[2,1,3]],[[1,1,0],[2,1,3]]]))",
    "np.lexsort(a([[1.,numpy.nan,1.],[2,1,2]]))",
    "np.linalg.qr(a([[1.,2],[3,4],[5,6]]),mode='r')",
    "np.linalg.svd(a([[1.,2],[3,4]]),compute_uv=False,hermitian=True)",
    "np.linalg.pinv(a([[1.+2j,2],[3+1j,4]]),hermitian=True)",
    "np.linalg.matrix_rank(a([[1.,7],[1,1]]),hermitian=True)",
    "np.linalg.matrix_rank(a([0.,2,0]))",
    "np.linalg.matrix_rank(a([0,0]))",
    "np.linalg.matrix_rank(a(0.5))",
    *(
        f"np.{f}(a([[3.,1,numpy.nan,2],[4,1,1,9]]),{q},axis={axis},weights=a({w}),method='inverted_cdf')"
        for f, q in (("quantile", [0, 0.25, 1]), ("nanquantile", [0, 0.5]), ("percentile", 40), ("nanpercentile", 60))
        for axis in (0, 1, None)
        for w in ([[1, 0, 2, 3], [0, 1, 1, 2]], [[1, 2, 3, 1], [2.5, 1, 1, 0]])
    ),
    "np.quantile(a([[3.,1,2],[4,1,1]]),[0,0.5],axis=1,weights=a([0,1,2]),method='inverted_cdf')",
    "np.equal(2**63,2**63)",
    "np.less(2**70,2**63)",
    "np.greater_equal(-2**65,2**63+1)",
    "np.not_equal(3,3)",
    "np.sum(a([2**63+1,2],dtype='u8'),initial=2.5)",
    "np.prod(a([1,3]),initial=2.5)",
    "np.max(a([2**62+1,5]),initial=0.0)",
    "np.max(a([2**62+1,5]),initial=0.5,where=a([True,False]))",
    "np.min(a([2**62+1,2**62+3]),initial=numpy.float32(2e9))",
    "np.max(a([0,0],dtype=bool),initial=2)",
    "np.sum(a([1.5,2],dtype='f4'),initial=numpy.float64(0.1)).dtype",
    "np.polyval([],a([numpy.nan,numpy.inf]))",
    "np.polyval([3.],a([2.,-1]))",
    "np.delete(a([1,2,3]),[])",
    "np.repeat(a([1,2,3]),[2])",
    "np.repeat(a([1,2,3]),a([0,1,2]))",
    "np.compress([1,0],a([1,2,3]))",
    "np.vsplit(a([[1,2],[3,4]]),2)",
    "a([[1,2],[3,4]]).item(1,0)",
    "a([[1,2],[3,4]]).item((1,-1))",
    "a([1,2]).item(-1)",
    "np.polyder(a([200,255,0,7],'u1'))",
    "np.polyder(a([-128,127,0],'i1'),2)",
    "np.polyder(a([True,True,False])).dtype",
    "np.polyder(a([1,2],'f2')+a(0,'f2'),0).dtype",
    "np.polyder(a([2**63,1],'u8'))",
    "np.column_stack([1,2,3])",
    "np.column_stack([1,a([2]),a([[3,4]])])",
    "np.column_stack(a([1,2]))",
]

REFUSED = [
    "np.rot90(a([[1,2],[3,4]]),axes=(0,0))",
    "np.rot90(a([[1,2],[3,4]]),axes=(1,-1))",
    "np.diff(a([1,2,3]),n=-1)",
    "np.digitize(a([1,2,3]),[1,5,2])",
    "np.bincount(a([1,2]),minlength=-1)",
    "np.bincount(a([1,-2]))",
    "np.percentile(a([1.,2,3]),101)",
    "np.percentile(a([1.,2,3]),-1)",
    'np.percentile(a([1.,2,3]),float("nan"))',
    "np.quantile(a([1.,2,3]),[0.5,1.5])",
    "np.nanquantile(a([1.,2,3]),-0.1)",
    "np.unravel_index(100,(3,4))",
    "np.unravel_index([3,-13],(3,4))",
    "np.unravel_index(0,(0,4))",
    "np.ravel_multi_index((3,0),(3,4))",
    "np.ravel_multi_index((0,-1),(3,4))",
    "np.linspace(0,1,-1)",
    "np.logspace(0,1,-1)",
    "np.geomspace(1,2,-1)",
    'np.unpackbits(a([2],dtype="u1"),count=-9)',
    "np.histogram(a([1.,2.]),range=(numpy.nan,2))",
    "np.histogram(a([1.,2.]),range=(1,numpy.inf))",
    "np.histogram(a([1.,2.]),range=(3,2))",
    "np.histogram(a([1.,2,3]),bins=[3,2,1])",
    "np.histogram(a([1.,2,3]),bins=0)",
    "np.histogram(a([1.,2,3]),bins='none')",
    "np.histogram(a([1.,2,3]),bins='auto',weights=[1,2,3])",
    "np.piecewise(a([1,2,3]),[a([True])[:,None]*a([[True,True,True]]*2)],[4,0])",
    "np.delete(a([1,2,3]),5)",
    "np.max(a([]))",
    "np.max(a([1,2]),initial=numpy.nan)",
    "np.min(a([1,2],dtype='u1'),initial=-numpy.inf)",
    "np.sum(a([1,2]),initial=numpy.inf)",
    "np.max(a([1,2],dtype='u1'),initial=300.5)",
    "np.linspace([0,1],[1,2,3])",
    "np.linspace([0,1],3,4,axis=2)",
    "np.geomspace([1,0],3,4)",
    "np.add.reduce(a([[1,2]]),0,None,numpy.zeros(1))",
    "np.insert(a([1,2,3]),numpy.array([[True]]),9)",
    "np.insert(a([1,2,3]),numpy.array(True),9)",
    "np.insert(a([1,2,3]),numpy.array([False]*4+[True]),9)",
    "np.lexsort(a([[1,2],[3,4]]),axis=1)",
    "np.lexsort((a([1,2]),a([1,2,3])))",
    "np.quantile(a([1.,2]),0.5,weights=a([1,2]))",
    "np.quantile(a([1.,2]),0.5,weights=[1,-2],method='inverted_cdf')",
    "np.quantile(a([1.,2]),0.5,weights=[1,2,3],method='inverted_cdf')",
    "np.linalg.svd(a([[1.,2,3],[3,4,5]]),hermitian=True)",
    "np.take(a([1,2,3]),2**63)",
    "np.sum(a([[1,2]]),keepdims=[0])",
    "np.max(a([[1,2]]),keepdims=())",
    "np.roll(a([[1,2]]),(1,2,3),(0,1))",
    "np.pad(a([1,2,3]),-1,'edge')",
    "np.pad(a([1,2,3]),-1,'median')",
    "np.pad(a([1,2,3]),(1,-1))",
    "np.pad(a([1,2,3]),{0:-1})",
    "np.pad(a([1,2,3]),{1:1})",
    "np.pad(a([1,2,3]),1.5)",
    "np.pad(a([1,2,3]),1,'edge',unknown=2)",
    "np.pad(a([1,2,3]),((1,2),(1,)))",
    "np.linalg.norm(a([]),-numpy.inf)",
    "np.expand_dims(np.ones((1,)*64),0)",
    "np.ones((1,)*65)",
    "np.ones((1,)*40)[(None,)*30]",
    "np.reshape(a([1]),(1,)*65)",
    "np.broadcast_to(a([1]),(1,)*65)",
    "np.multiply.outer(np.ones((1,)*40),np.ones((1,)*40))",
    "np.vdot(a([1,2,3]),a([1]))",
    "np.vdot(a([1,2,3]),a(1))",
    "np.compress(a([[1,0],[0,1]]),a([1,2,3]))",
    "np.compress(1,a([1,2,3]))",
    "np.vsplit(a([1,2]),1)",
    "np.repeat(a([1,2,3]),(0,0))",
    "np.repeat(a([1,2,3]),[1,-1,0])",
    "np.delete(a([1,2,3]),[True,False])",
    "np.delete(a([1,2,3]),[[True,False,True]])",
    "np.delete(a([1,2,3]),True)",
    "a([1,2]).item(5)",
    "a([1,2]).item()",
    "a([1,2]).item(0,0)",
    "a([1,2]).item(0.5)",
    "np.cov(a([[1.,2],[3,4]]),ddof=[1,2])",
]


def computed(expression: str, library: Any) -> Any:
    """The value of ``expression``, in which ``np`` is ``library`` and ``a`` makes an array of it."""

    def array(*args: Any, **options: Any) -> Any:
        return library.asarray(np.asarray(*args, **options))

    with np.errstate(all="ignore"), override(default_float="float64"):
        return eval(expression, {"np": library, "numpy": np, "a": array})


def compare(got: Any, want: Any) -> None:
    """Integers and bools are equal, and floats are close."""
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            compare(g, w)
    elif isinstance(want, np.dtype):
        assert got == want
    else:
        assert np.shape(got) == np.shape(want)
        exact = np.asarray(want).dtype.kind in "iub"
        (np.testing.assert_array_equal if exact else np.testing.assert_allclose)(np.asarray(got), want, **({} if exact else {"rtol": 1e-14}))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", VALUES)
def test_value_is_numpys(expression: str) -> None:
    compare(computed(expression, hnp), of_numpy(lambda library: computed(expression, library)))


@pytest.mark.parametrize("expression", REFUSED)
def test_what_numpy_refuses_is_refused(expression: str) -> None:
    with pytest.raises((ValueError, IndexError, TypeError, OverflowError)):
        computed(expression, np)
    with pytest.raises(hg.errors.HologramError):
        computed(expression, hnp)


INTEGERS = [-(2**63), -(2**53) - 1, -1, 0, 1, 127, 255, 2**24, 2**24 + 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1]


@pytest.mark.parametrize("left", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_integers_of_any_types_are_compared_as_numbers(left: str) -> None:
    for right in ("int8", "uint16", "int32", "int64", "uint64"):
        x, y = (np.array([v for v in INTEGERS if np.iinfo(d).min <= v <= np.iinfo(d).max], d) for d in (left, right))
        for name in ("lt", "le", "eq", "ne", "gt", "ge"):
            f = getattr(operator, name)
            want = np.array([[f(int(a), int(b)) for b in y] for a in x])
            for got in (f(hg.tensor(x)[:, None], hg.tensor(y)), hg.jit(f)(x[:, None], y), f(hg.tensor(x)[:, None], y)):
                np.testing.assert_array_equal(np.asarray(got), want, err_msg=f"{left} {name} {right}")


@pytest.mark.parametrize("kind", ["int8", "uint8", "uint64"])
def test_what_is_made_of_pythons_integers_is_compared_as_a_number(kind: str) -> None:
    x = np.array([0, 44, 127], kind)
    for number in (-1, 300, 2**40):
        np.testing.assert_array_equal(np.asarray(hnp.asarray(number) > hg.tensor(x)), number > x)
        np.testing.assert_array_equal(np.asarray(hg.jit(operator.eq)(x, number)), x == number)


def test_symbolic_counts_less_a_correction_are_no_less_than_zero() -> None:
    for f in (lambda x: hnp.var(x, ddof=5), lambda x: hnp.cov(x, ddof=5)):
        symbolic, static = (hg.jit(f, dynamic=dynamic) for dynamic in (True, False))
        for n in (3, 5, 7):
            x = np.arange(n, dtype=np.float64)
            np.testing.assert_array_equal(np.asarray(symbolic(x)), np.asarray(static(x)))


def test_positions_in_arrays_of_symbolic_extents() -> None:
    f = hg.jit(
        lambda i, x: (hnp.unravel_index(i, x.shape), hnp.ravel_multi_index((i % 2, i % 3), x.shape), hnp.unravel_index(i, x.shape, order="F")),
        dynamic=True,
    )
    at = np.array([0, 3, 5])
    for shape in ((2, 3), (4, 5), (3, 4)):
        (got, flat, fortran) = f(at, np.zeros(shape))
        compare(got, np.unravel_index(at, shape))
        compare(flat, np.ravel_multi_index((at % 2, at % 3), shape))
        compare(fortran, np.unravel_index(at, shape, order="F"))


def test_computed_positions_are_clamped() -> None:
    for dynamic in (False, True):
        f = hg.jit(lambda i, x: hnp.unravel_index(i, x.shape), dynamic=dynamic)
        compare(f(np.array([6, -1, -9]), np.zeros((2, 3))), (np.array([1, 1, 0]), np.array([2, 2, 0])))


def test_derivatives_of_interp_at_knots_are_jaxs() -> None:
    knots, heights = np.array([0.0, 1.0, 2.0]), np.array([1.0, 10.0, 20.0])
    at = np.array([-1.0, 0.0, 0.5, 1.0, 2.0, 3.0])
    slopes = hg.grad(lambda x: hnp.interp(x, knots, heights).sum())(at)
    np.testing.assert_array_equal(np.asarray(slopes), [0, 9, 9, 10, 10, 0])
    shares = hg.grad(lambda y: hnp.interp(np.array([2.0, 0.25]), knots, y).sum())(heights)
    np.testing.assert_array_equal(np.asarray(shares), [0.75, 0.25, 1])


@pytest.mark.parametrize("kind", ["float16", "float32", "int8"])
def test_counts_of_points_have_no_narrow_type(kind: str) -> None:
    points = np.ones((70000, 1), kind)
    for default in ("float32", "float64"):
        with override(default_float=default):
            counts, _ = hnp.histogramdd(points, bins=1)
        assert counts.dtype == default
        np.testing.assert_array_equal(np.asarray(counts), np.histogramdd(points, bins=1)[0])
    weights = np.array([1.0, 2.0**-40])
    sums, _ = hnp.histogramdd(points[:2], bins=1, weights=weights)
    np.testing.assert_array_equal(np.asarray(sums), np.histogramdd(points[:2], bins=1, weights=weights)[0])


def test_taking_fills_in_what_is_out_of_range() -> None:
    x = np.arange(1, 7).reshape(2, 3)
    for kind, fill in (("int8", -128), ("uint16", 65535), ("float32", np.nan), ("bool", True)):
        values = x.astype(kind)
        for take in (hnp.take, hg.jit(hnp.take, static_argnames=("axis", "mode"))):
            found = take(values, np.array([[0, -1], [3, -4]]), axis=1, mode="fill")
            assert found.dtype == kind
            np.testing.assert_array_equal(found, np.stack([values[:, [0, 2]], np.full((2, 2), fill, kind)], axis=1))
    np.testing.assert_array_equal(hnp.take(x, [9, 1], mode="fill", fill_value=7), [7, 2])
    assert hnp.take(np.zeros((0, 2)), [0, 1], axis=0, mode="fill").shape == (2, 2)
    with pytest.raises(hg.errors.ArgumentError, match="fill_value"):
        hnp.take(x, [0], fill_value=7)


def test_quantiles_of_no_weight_are_nan() -> None:
    found = hnp.quantile([[1.0, 2.0], [3.0, 4.0]], 0.5, axis=1, weights=[[0.0, 0.0], [0.0, 1.0]], method="inverted_cdf")
    np.testing.assert_array_equal(found, [np.nan, 4])


@pytest.mark.parametrize("shape", [(2, 0), (0, 0)])
def test_shares_of_no_elements(shape: tuple[int, int]) -> None:
    for f in (hg.nn.softmax, hg.nn.log_softmax):
        assert np.asarray(hg.jit(lambda x, f=f: f(x, axis=1))(np.zeros(shape))).shape == shape
    np.testing.assert_array_equal(np.asarray(hnp.logsumexp(np.zeros(shape), axis=1)), np.full(shape[0], -np.inf))


def test_computed_bins_may_descend() -> None:
    f = hg.jit(hnp.digitize)
    x = np.array([0.5, 1.0, 2.5, 3.0])
    for bins in ([3.0, 2.0, 1.0], [1.0, 2.0, 3.0]):
        np.testing.assert_array_equal(np.asarray(f(x, np.array(bins))), np.digitize(x, bins))
