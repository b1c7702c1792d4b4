//! The type of the OMG interoperability suite.

use plainsong::prelude::*;

/// A coloured shape: the colour is the key.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(name = "ShapeType", appendable)]
pub(crate) struct ShapeType {
    #[dds(key, bound = 128)]
    pub(crate) color: String,
    pub(crate) x: i32,
    pub(crate) y: i32,
    pub(crate) shapesize: i32,
    pub(crate) additional_payload_size: Vec<u8>,
}

/// Width and height of the canvas that shapes bounce in.
pub(crate) const CANVAS: (i32, i32) = (240, 270);

/// A velocity that turns around at the edges of the canvas.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Motion {
    dx: i32,
    dy: i32,
}

impl Motion {
    /// A place and a velocity that differ from seed to seed.
    pub(crate) fn scatter(seed: u64, shape: &mut ShapeType) -> Self {
        // A multiplicative hash spreads neighbouring seeds; quality beyond that does not matter here.
        let mixed = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let part = |shift: u32, modulus: i32| ((mixed >> shift) & 0x7fff) as i32 % modulus;
        shape.x = part(8, CANVAS.0);
        shape.y = part(24, CANVAS.1);
        let sign = |bit: u32| if mixed >> bit & 1 == 1 { 1 } else { -1 };
        Self { dx: (part(40, 5) + 1) * sign(62), dy: (part(48, 5) + 1) * sign(63) }
    }

    /// Moves the shape one step.
    pub(crate) fn step(&mut self, shape: &mut ShapeType) {
        (shape.x, self.dx) = bounce(shape.x + self.dx, self.dx, CANVAS.0);
        (shape.y, self.dy) = bounce(shape.y + self.dy, self.dy, CANVAS.1);
    }
}

fn bounce(position: i32, velocity: i32, edge: i32) -> (i32, i32) {
    if position < 0 {
        (0, -velocity)
    } else if position > edge {
        (edge, -velocity)
    } else {
        (position, velocity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_never_leaves_the_canvas() {
        let mut shape = ShapeType::default();
        for seed in 0..50 {
            let mut motion = Motion::scatter(seed, &mut shape);
            for _ in 0..1000 {
                motion.step(&mut shape);
                assert!((0..=CANVAS.0).contains(&shape.x) && (0..=CANVAS.1).contains(&shape.y));
            }
        }
    }
}
