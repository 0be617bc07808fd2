//! A process whose first call goes to `cust`, before this crate loads the driver.

use tilelift::driver::{Device, Driver, DriverError};

use crate::tools::{another_process, role};

#[test]
fn cust_used_first_finds_the_driver_or_its_absence() {
    if role().as_deref() == Some("cust first") {
        return cust_first();
    }
    let test = "driver_start::cust_used_first_finds_the_driver_or_its_absence";
    let output = another_process(test, "cust first")
        .output()
        .expect("this program starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn cust_first() {
    // Through the lazy entry, with an argument that has to come through.
    let version = cust::CudaApiVersion::get();
    let started = cust::init(cust::CudaFlags::empty());
    match Driver::load() {
        Err(DriverError::NoDriver { reason }) => {
            eprintln!("no driver here: {reason}");
            assert_eq!(version, Err(cust::error::CudaError::NoDevice));
            assert_eq!(started, Err(cust::error::CudaError::NoDevice));
            assert_eq!(Device::all(), Err(DriverError::NoDriver { reason }));
        }
        Err(DriverError::NoDevice) => {
            assert_eq!(started, Err(cust::error::CudaError::NoDevice));
        }
        Err(other) => panic!("{other}"),
        Ok(driver) => {
            let version = version.expect("the driver reports its version");
            let numbers = (version.major() * 1000 + version.minor() * 10) as u32;
            assert_eq!(started, Ok(()));
            assert_eq!(driver.version().0, numbers);
        }
    }
}
